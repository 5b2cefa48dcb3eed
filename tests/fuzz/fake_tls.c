/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_tls.h"

#include <errno.h>

#define TURNS_MAX 4 /* of a handshake */

struct tls_session {
    enum tls_state state; /* in the end */
    int turns;            /* until then */
    bool wrong_key;
    char *identity;
};

static struct fuzz_bytes *source;

/* The module's own, of which there is nothing to keep. */
static struct tls_party *party_create(const struct tls_party_config *config, struct error *err)
{
    (void)config;
    (void)err;
    return (struct tls_party *)&source;
}

static void party_destroy(struct tls_party *party)
{
    (void)party;
}

static struct tls_session *create(struct tls_party *party, int fd, struct error *err)
{
    uint8_t choice = fuzz_u8(source);
    FUZZ_CHECK(party != NULL && fd >= 0);
    if (choice == 255) {
        error_set(err, "no session");
        return NULL;
    }
    struct tls_session *session = mem_alloc(sizeof(*session));
    *session = (struct tls_session){.state = choice & 1 ? TLS_FAILED : TLS_OPEN,
                                    .turns = choice >> 1 & (TURNS_MAX - 1),
                                    .wrong_key = (choice & 8) != 0,
                                    .identity = fuzz_line(source)};
    return session;
}

static void destroy(struct tls_session *session)
{
    if (session == NULL)
        return;
    free(session->identity);
    free(session);
}

static enum tls_state advance(struct tls_session *session)
{
    return session->turns-- > 0 ? TLS_HANDSHAKE : session->state;
}

static int wants(const struct tls_session *session, enum tls_operation operation)
{
    (void)session;
    return operation == TLS_READING ? TLS_WANT_READ : TLS_WANT_WRITE;
}

static const char *identity(const struct tls_session *session)
{
    return session->identity;
}

static const char *problem(const struct tls_session *session)
{
    return session->state == TLS_FAILED ? "it says nonsense" : "";
}

static bool has_wrong_key(const struct tls_session *session)
{
    return session->wrong_key;
}

static ssize_t read_some(struct tls_session *session, void *bytes, size_t room)
{
    (void)session;
    size_t length = room < source->left ? room : source->left;
    if (length > 0)
        memcpy(bytes, source->at, length);
    source->at += length;
    source->left -= length;
    return (ssize_t)length;
}

static ssize_t write_some(struct tls_session *session, const void *bytes, size_t length)
{
    uint8_t choice = fuzz_u8(source);
    (void)session;
    FUZZ_CHECK(bytes != NULL);
    errno = EPIPE;
    return choice == 255 ? -1 : choice == 254 ? (ssize_t)length / 2 : (ssize_t)length;
}

static void end(struct tls_session *session)
{
    FUZZ_CHECK(session != NULL);
}

const struct tls_module *fake_tls(struct fuzz_bytes *bytes)
{
    static const struct tls_module module = {.version = TLS_MODULE_VERSION,
                                             .party_create = party_create,
                                             .party_destroy = party_destroy,
                                             .create = create,
                                             .destroy = destroy,
                                             .advance = advance,
                                             .wants = wants,
                                             .identity = identity,
                                             .problem = problem,
                                             .has_wrong_key = has_wrong_key,
                                             .read = read_some,
                                             .write = write_some,
                                             .end = end};
    source = bytes;
    return &module;
}
