/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/auth.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

    auth->session = session;
    auth->user = user;
    auth->keys = keys;
    auth->no_keys = no_keys;
    return auth;
}

void auth_destroy(struct auth *auth)
{
    mem_free_at(&auth);
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
            (void)buf_printf(text, "%s key %s (%s)", key_name(key), key->origin,
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
