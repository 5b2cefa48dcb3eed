/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/host_key.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "transport/ssh_module/fields.h"
#include "transport/ssh_module/known_files.h"
#include "transport/ssh_module/known_hosts.h"

/* Key types, best first, and the names of signatures that serve them. */
static const struct {
    const char *type, *methods[4];
} hosts_types[] = {
    {"ssh-ed25519", {"ssh-ed25519"}},
    {"ecdsa-sha2-nistp256", {"ecdsa-sha2-nistp256"}},
    {"ecdsa-sha2-nistp384", {"ecdsa-sha2-nistp384"}},
    {"ecdsa-sha2-nistp521", {"ecdsa-sha2-nistp521"}},
    {"ssh-rsa", {"rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"}},
};
#define TYPE_COUNT (sizeof hosts_types / sizeof hosts_types[0])

static bool is_listed(const struct known_hosts *known, const char *type)
{
    const char *listed;

    for (size_t i = 0;; i++) {
        listed = known_hosts_type(known, i);
        if (!listed || strcmp(listed, type) == 0)
            return listed != NULL;
    }
}

struct supported {
    const char **names; /* libssh2's */
    int count;
};

static struct supported supported_by(LIBSSH2_SESSION *session)
{
    struct supported supported = {.names = NULL};

    supported.count =
        libssh2_session_supported_algs(session, LIBSSH2_METHOD_HOSTKEY, &supported.names);
    return supported;
}

static void supported_free(LIBSSH2_SESSION *session, struct supported *supported)
{
    if (supported->count > 0)
        libssh2_free(session, supported->names);
}

static bool supports(const struct supported *supported, const char *method)
{
    for (int i = 0; i < supported->count; i++) {
        if (strcmp(supported->names[i], method) == 0)
            return true;
    }
    return false;
}

/* Only what libssh2 knows: it would leave out the rest, but by a memcpy onto itself. */
static void put_methods(struct buf *list, const struct supported *supported,
                        const char *const *methods)
{
    for (size_t i = 0; methods[i]; i++) {
        if (supports(supported, methods[i]))
            (void)buf_printf(list, "%s%s", list->length > 0 ? "," : "", methods[i]);
    }
}

void host_key_prefer(LIBSSH2_SESSION *session, const struct known_hosts *known)
{
    struct supported supported = supported_by(session);
    AUTO_BUF struct buf list = BUF_INIT(1024);

    for (int listed = 1; listed >= 0; listed--) {
        for (size_t i = 0; i < TYPE_COUNT; i++) {
            if (is_listed(known, hosts_types[i].type) == (listed == 1))
                put_methods(&list, &supported, hosts_types[i].methods);
        }
    }
    (void)libssh2_session_method_pref(session, LIBSSH2_METHOD_HOSTKEY, buf_text(&list));
    supported_free(session, &supported);
}

/* A listed key that the server may still have, but that we cannot have asked for. SHA-1
 * signatures do not count: servers of today do not give them. */
static bool lists_what_we_cannot_ask(LIBSSH2_SESSION *session, const struct known_hosts *known)
{
    struct supported supported = supported_by(session);
    bool found = false;
    const char *type = known_hosts_type(known, 0);

    for (size_t i = 0; type && !found; i++) {
        found = !supports(&supported, strcmp(type, "ssh-rsa") == 0 ? "rsa-sha2-512" : type);
        type = known_hosts_type(known, i + 1);
    }
    supported_free(session, &supported);
    return found;
}

static void tell_changed(struct buf *text, const struct known_hosts *known,
                         const struct known_answer *answer, const char *shown)
{
    AUTO_FREE char *was = fingerprint_new(answer->key.at, answer->key.length);
    struct byte_view type = key_blob_type(answer->key);

    (void)buf_printf(text,
                     "the host key has changed: it shows %s, but %.*s %s is known (%s:%d): if the "
                     "host was reinstalled, run: ssh-keygen -f '%s' -R '%s'; if not, another "
                     "machine may pose as the host",
                     shown, (int)type.length, (const char *)type.at, was, answer->file,
                     answer->line, answer->file, known_hosts_name(known));
}

static void accept_new(struct buf *text, const struct known_hosts *known,
                       const struct ssh_host_config *config, struct byte_view key)
{
    const char *file = config->known_hosts ? config->known_hosts[0] : NULL;
    struct error why = ERROR_INIT;

    if (!file)
        (void)buf_puts(text, ", new");
    else if (known_files_append(config->known_files, file, known, key, config->hash_names, &why) <
             0)
        (void)buf_printf(text, ", new, and not remembered: %s", why.text);
    else
        (void)buf_printf(text, ", new, added to %s", file);
}

static enum host_key_result judge_unknown(struct buf *text, const struct known_hosts *known,
                                          const struct ssh_host_config *config,
                                          struct byte_view key, const char *shown)
{
    const char *file = config->known_hosts ? config->known_hosts[0] : NULL;

    if (config->policy == SSH_HOST_STRICT) {
        (void)buf_printf(
            text,
            "the host key %s is not known: compare it with the host's own key; if they are equal, "
            "add a line for '%s' to %s, or %s",
            shown, known_hosts_name(known), file ? file : "~/.ssh/known_hosts",
            config->strict_remedy);
        return HOST_KEY_REFUSED;
    }
    (void)buf_printf(text, "host key %s", shown);
    accept_new(text, known, config, key);
    return HOST_KEY_ACCEPTED;
}

static enum host_key_result judge(LIBSSH2_SESSION *session, const struct known_hosts *known,
                                  const struct ssh_host_config *config, struct byte_view key,
                                  const char *shown, struct buf *text)
{
    struct known_answer answer = known_hosts_check(known, key);

    if (answer.verdict == KNOWN_REVOKED) {
        (void)buf_printf(text,
                         "the host key %s is revoked (%s:%d): create a new key on the host; "
                         "another machine with the revoked key may pose as the host",
                         shown, answer.file, answer.line);
        return HOST_KEY_REFUSED;
    }
    if (answer.verdict == KNOWN_UNKNOWN)
        return judge_unknown(text, known, config, key, shown);
    if (answer.verdict == KNOWN_MATCH || config->policy == SSH_HOST_ANY) {
        (void)buf_printf(text, "host key %s%s", shown,
                         answer.verdict == KNOWN_MATCH ? "" : ", not the known one");
        return HOST_KEY_ACCEPTED;
    }
    if (answer.verdict == KNOWN_UNDECIDABLE) {
        (void)buf_printf(text,
                         "a certificate authority is known for the host (%s:%d), and libssh2 "
                         "cannot ask for certificates",
                         answer.file, answer.line);
        return HOST_KEY_FALLBACK;
    }
    if (answer.verdict == KNOWN_OTHER_TYPE && lists_what_we_cannot_ask(session, known)) {
        (void)buf_printf(text,
                         "the known host key (%s:%d) is of a type that libssh2 %s cannot ask "
                         "for",
                         answer.file, answer.line, libssh2_version(0));
        return HOST_KEY_FALLBACK;
    }
    tell_changed(text, known, &answer, shown);
    return HOST_KEY_REFUSED;
}

enum host_key_result host_key_judge(LIBSSH2_SESSION *session, const struct known_hosts *known,
                                    const struct ssh_host_config *config, struct buf *text)
{
    size_t length = 0;
    int type = 0;
    const char *bytes = libssh2_session_hostkey(session, &length, &type);
    struct byte_view key = {.at = (const unsigned char *)bytes, .length = length}, name;
    AUTO_FREE char *print = NULL, *shown = NULL;

    name = bytes ? key_blob_type(key) : key;
    if (!bytes || name.length == 0 || name.length > 64) {
        (void)buf_puts(text, "libssh2 does not return the host's key");
        return HOST_KEY_FALLBACK;
    }
    print = fingerprint_new(bytes, length);
    shown = mem_printf("%.*s %s", (int)name.length, (const char *)name.at, print);
    return judge(session, known, config, key, shown, text);
}
