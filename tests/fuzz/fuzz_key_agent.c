/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an SSH key agent answers to two questions: for its keys, and for a signature. The first two
 * bytes say whether the lengths in front of the answers are right, and where the second begins.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "place.h"
#include "transport/ssh_module/keys_test.h"

#define ANSWERS_MAX ((size_t)64 << 10) /* what a socket takes without a reader */

static void list_one(void *context, struct byte_view blob, const char *comment)
{
    struct error err = ERROR_INIT;
    int *listed = context;
    FUZZ_CHECK(strlen(comment) <= 200);
    struct key *key = key_create_public(blob, comment, &err);
    fuzz_check_error(key == NULL ? -1 : 0, &err);
    key_destroy(key);
    (*listed)++;
}

/* An Ed25519 key, of which only the form matters. */
static struct key *make_key(void)
{
    AUTO_BUF struct buf blob = BUF_INIT(128);
    static const uint8_t bytes[32] = {1};
    fields_put_text(&blob, "ssh-ed25519");
    fields_put_string(&blob, bytes, sizeof(bytes));
    return key_create_public(buf_view(&blob), "key", NULL);
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    FUZZ_CHECK(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    FUZZ_CHECK(listen(fd, 4) == 0);
    return fd;
}

static void put_answer(struct buf *out, const uint8_t *bytes, size_t length, bool framed)
{
    if (framed)
        fields_put_u32(out, (uint32_t)length);
    if (length > 0)
        buf_append(out, bytes, length);
}

static void write_answers(struct fuzz_bytes *bytes, struct buf *out)
{
    uint8_t framed = fuzz_u8(bytes), cut = fuzz_u8(bytes);
    size_t first = cut < bytes->left ? cut : bytes->left;
    put_answer(out, bytes->at, first, (framed & 1) == 0);
    put_answer(out, bytes->left > 0 ? bytes->at + first : NULL, bytes->left - first,
               (framed & 2) == 0);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size < ANSWERS_MAX ? size : ANSWERS_MAX};
    char *path AUTO_FREE = place_path("agent");
    AUTO_BUF struct buf answers = BUF_INIT(ANSWERS_MAX + 16), signature = BUF_INIT(1 << 20);
    struct error err = ERROR_INIT;
    int listed = 0, listener = listen_on(path);
    struct key_agent *agent = key_agent_create(path, &err);
    FUZZ_CHECK(agent != NULL);
    int fd = accept(listener, NULL, NULL);
    FUZZ_CHECK(fd >= 0);
    fd_close(&listener); /* it cannot be asked again */
    unlink(path);
    write_answers(&bytes, &answers);
    FUZZ_CHECK(fd_send_all(fd, buf_text(&answers), answers.length) == 0);
    shutdown(fd, SHUT_WR);
    int result = key_agent_list(agent, list_one, &listed, &err);
    fuzz_check_error(result, &err);
    struct key *key = make_key();
    FUZZ_CHECK(key != NULL);
    result = key_agent_sign(agent, key, (struct byte_view){(const unsigned char *)"data", 4},
                            &signature, &err);
    fuzz_check_error(result, &err);
    key_destroy(key);
    key_agent_destroy(agent);
    fd_close(&fd);
    return 0;
}
