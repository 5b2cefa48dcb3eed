/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "transport/ssh_module/fields.h"
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

#define FAST "aes128-ctr"

struct supported {
    const char **names; /* libssh2's */
    int count;
};

static struct supported supported_by(LIBSSH2_SESSION *session, int method)
{
    struct supported supported = {.names = NULL};

    supported.count = libssh2_session_supported_algs(session, method, &supported.names);
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
    struct supported supported = supported_by(session, LIBSSH2_METHOD_HOSTKEY);
    AUTO_BUF struct buf list = BUF_INIT(1024);

    for (int listed = 1; listed >= 0; listed--) {
        for (size_t i = 0; i < TYPE_COUNT; i++) {
            if (strv_has(&known->types, hosts_types[i].type) == (listed == 1))
                put_methods(&list, &supported, hosts_types[i].methods);
        }
    }
    (void)libssh2_session_method_pref(session, LIBSSH2_METHOD_HOSTKEY, buf_text(&list));
    supported_free(session, &supported);
}

/* The driver deciphers the output of all hosts in one thread, and a tenth of that is saved. */
void cipher_prefer(LIBSSH2_SESSION *session)
{
    static const int directions[] = {LIBSSH2_METHOD_CRYPT_CS, LIBSSH2_METHOD_CRYPT_SC};

    for (size_t i = 0; i < 2; i++) {
        struct supported supported = supported_by(session, directions[i]);
        AUTO_BUF struct buf list = BUF_INIT(1024);

        put_methods(&list, &supported, (const char *const[]){FAST, NULL});
        for (int j = 0; j < supported.count; j++) {
            if (strcmp(supported.names[j], FAST) != 0)
                put_methods(&list, &supported, (const char *const[]){supported.names[j], NULL});
        }
        (void)libssh2_session_method_pref(session, directions[i], buf_text(&list));
        supported_free(session, &supported);
    }
}

/* A listed key that the server may still have, but that we cannot have asked for. SHA-1
 * signatures do not count: servers of today do not give them. */
static bool lists_what_we_cannot_ask(LIBSSH2_SESSION *session, const struct known_hosts *known)
{
    struct supported supported = supported_by(session, LIBSSH2_METHOD_HOSTKEY);
    bool found = false;

    for (size_t i = 0; i < known->types.count && !found; i++) {
        const char *type = known->types.items[i];

        found = !supports(&supported, strcmp(type, "ssh-rsa") == 0 ? "rsa-sha2-512" : type);
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
                     answer->line, answer->file, known->name);
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
            shown, known->name, file ? file : "~/.ssh/known_hosts", config->strict_remedy);
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

#define TRIES_MAX 6
#define SIGNATURE_MAX 4096

struct auth {
    LIBSSH2_SESSION *session;
    const char *user; /* borrowed */
    struct ssh_keys *keys;
    const char *no_keys; /* borrowed; why `keys` is NULL */
    size_t next;         /* the key that is being tried */
    bool rsa_refused;
    struct error sign_error; /* of the last signature that failed */
};

struct auth *auth_create(LIBSSH2_SESSION *session, const char *user, struct ssh_keys *keys,
                         const char *no_keys)
{
    struct auth *auth = mem_alloc(sizeof *auth);

    *auth = (struct auth){.session = session, .user = user, .keys = keys, .no_keys = no_keys};
    return auth;
}

/* libssh2 frees the signature with the session's allocator, which is malloc's. */
static int sign_for_libssh2(LIBSSH2_SESSION *session, unsigned char **signature, size_t *length,
                            const unsigned char *data, size_t data_length, void **abstract)
{
    struct auth *auth = *abstract;
    AUTO_BUF struct buf made = BUF_INIT(SIGNATURE_MAX);
    struct byte_view view = {.at = data, .length = data_length};

    (void)session;
    if (keys_sign(auth->keys, keys_get(auth->keys, auth->next), view, &made, &auth->sign_error) < 0)
        return -1;
    *length = made.length;
    *signature = (unsigned char *)buf_take(&made);
    return 0;
}

static bool connection_ended(int rc)
{
    return rc == LIBSSH2_ERROR_SOCKET_DISCONNECT || rc == LIBSSH2_ERROR_SOCKET_RECV ||
           rc == LIBSSH2_ERROR_SOCKET_SEND || rc == LIBSSH2_ERROR_SOCKET_NONE;
}

static void tell_ended(const struct auth *auth, struct buf *text)
{
    if (auth->next > 0)
        (void)buf_printf(text,
                         "the server closed the connection after %zu key%s (its MaxAuthTries?): "
                         "name the right key with --ssh-identity-file and set IdentitiesOnly yes "
                         "in ~/.ssh/config",
                         auth->next, auth->next == 1 ? "" : "s");
}

/* Methods that need no answer from the user, and that only the ssh program knows. */
static bool offers_what_ssh_can(const char *methods)
{
    return strstr(methods, "gssapi") != NULL || strstr(methods, "hostbased") != NULL;
}

static bool is_openssh(LIBSSH2_SESSION *session)
{
    const char *banner = libssh2_session_banner_get(session);

    return banner && strstr(banner, "OpenSSH") != NULL;
}

static void tell_refused(const struct auth *auth, const char *methods, struct buf *text)
{
    size_t known = keys_count(auth->keys);

    (void)buf_printf(text, "Permission denied (%s) for user %s: ", methods, auth->user);
    if (!strstr(methods, "publickey"))
        (void)buf_puts(text, "the server does not accept keys, and hvdrun does not ask for a "
                             "password: enable PubkeyAuthentication in its sshd_config");
    else if (known == 0)
        (void)buf_puts(text, auth->no_keys ? auth->no_keys : "there is no key to offer");
    else if (auth->sign_error.text[0])
        (void)buf_printf(text, "none of %zu keys was accepted; %s", auth->next,
                         auth->sign_error.text);
    else if (auth->next < known)
        (void)buf_printf(text,
                         "none of the first %zu of %zu keys was accepted, and servers allow "
                         "no more: name the right one with --ssh-identity-file and set "
                         "IdentitiesOnly yes in ~/.ssh/config",
                         auth->next, known);
    else if (known == 1)
        (void)buf_printf(text,
                         "the key %s was not accepted: add its public half to "
                         "~/.ssh/authorized_keys there, or name another with "
                         "--ssh-identity-file",
                         keys_get(auth->keys, 0)->origin);
    else
        (void)buf_printf(text,
                         "none of %zu keys was accepted: add one to ~/.ssh/authorized_keys "
                         "there, or name another with --ssh-identity-file",
                         known);
}

/* No key is left: what does the server want? */
static enum auth_step give_up(struct auth *auth, struct buf *text)
{
    const char *methods =
        libssh2_userauth_list(auth->session, auth->user, (unsigned int)strlen(auth->user));
    const char *left = keys_left_to_ssh(auth->keys);

    if (!methods) {
        int rc = libssh2_session_last_errno(auth->session);

        if (rc == LIBSSH2_ERROR_EAGAIN)
            return AUTH_WAIT;
        if (libssh2_userauth_authenticated(auth->session)) {
            (void)buf_puts(text, "no authentication at all");
            return AUTH_DONE;
        }
        if (connection_ended(rc)) {
            tell_ended(auth, text);
            return AUTH_BROKEN;
        }
        methods = "publickey";
    }
    if (left && strstr(methods, "publickey")) {
        (void)buf_printf(text,
                         "the server accepted no key that libssh2 can use, but the ssh program can "
                         "try more (%s)",
                         left);
        return AUTH_FALLBACK;
    }
    if (auth->rsa_refused && !is_openssh(auth->session)) {
        (void)buf_puts(text, "the server may not understand how libssh2 offers RSA keys");
        return AUTH_FALLBACK;
    }
    if (offers_what_ssh_can(methods)) {
        (void)buf_printf(text, "no key was accepted, but the server offers %s", methods);
        return AUTH_FALLBACK;
    }
    tell_refused(auth, methods, text);
    return AUTH_REFUSED;
}

enum auth_step auth_advance(struct auth *auth, struct buf *text)
{
    while (auth->next < keys_count(auth->keys) && auth->next < TRIES_MAX) {
        const struct key *key = keys_get(auth->keys, auth->next);
        void *abstract = auth;
        int rc = libssh2_userauth_publickey(auth->session, auth->user,
                                            (const unsigned char *)buf_text(&key->auth_blob),
                                            key->auth_blob.length, sign_for_libssh2, &abstract);

        if (rc == LIBSSH2_ERROR_EAGAIN)
            return AUTH_WAIT;
        if (rc == 0) {
            (void)buf_printf(text, "%s key %s (%s)", key->type->shown, key->origin,
                             key->private ? "file" : "agent");
            return AUTH_DONE;
        }
        if (connection_ended(rc)) {
            tell_ended(auth, text);
            return AUTH_BROKEN;
        }
        if (key_is_rsa(key))
            auth->rsa_refused = true;
        auth->next++;
    }
    return give_up(auth, text);
}
