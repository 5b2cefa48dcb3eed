/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/parts.h"

#include <errno.h>
#include <libssh2.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "transport/ssh_module/known_hosts.h"

#define TEXT_MAX 4096
#define LOGIN_MAX ((size_t)1 << 20) /* bytes from a server until a channel is open */
#define FOREIGN_MAX 120             /* bytes of what a server says that we repeat */

struct ssh_session {
    struct ssh_host_config config;
    struct ssh_socket socket;
    LIBSSH2_SESSION *libssh2;
    LIBSSH2_CHANNEL *channel;
    struct known_hosts *known;
    struct auth *auth;
    struct duplex *duplex;
    enum ssh_state state, reached;
    bool exec; /* the channel is open, the command is being started */
    struct buf problem, summary, host_key;
};

static struct ssh_session *session_create(const struct ssh_host_config *config)
{
    struct ssh_session *session = mem_alloc(sizeof *session);
    struct error why = ERROR_INIT;

    session->config = *config;
    session->socket.fd = config->fd;
    session->socket.limited = true;
    session->socket.left = LOGIN_MAX;
    session->state = SSH_STATE_HANDSHAKE;
    buf_init(&session->problem, TEXT_MAX);
    buf_init(&session->summary, TEXT_MAX);
    buf_init(&session->host_key, TEXT_MAX);
    session->known = known_hosts_create(config->name, config->port);
    session->libssh2 = libssh2_session_init_ex(NULL, NULL, NULL, &session->socket);
    if (!session->libssh2) {
        (void)buf_puts(&session->problem, "libssh2 cannot create a session");
        session->state = SSH_STATE_FAILED;
    } else if (known_files_find(config->known_files, config->known_hosts, session->known, &why) <
               0) {
        (void)buf_puts(&session->problem, why.text);
        session->state = SSH_STATE_FALLBACK;
    } else {
        libssh2_session_set_blocking(session->libssh2, 0);
        socket_attach(session->libssh2);
        host_key_prefer(session->libssh2, session->known);
        cipher_prefer(session->libssh2);
        session->auth = auth_create(session->libssh2, config->user, config->keys, config->no_keys);
    }
    return session;
}

static void session_destroy(struct ssh_session *session)
{
    int keep = errno;

    if (!session)
        return;
    session->socket.mute = true;
    /* A key exchange that failed is cleaned up; one that is only freed leaks its secrets. */
    if (session->libssh2 && session->state == SSH_STATE_HANDSHAKE)
        (void)libssh2_session_handshake(session->libssh2, session->config.fd);
    /* Nothing can be sent any more, so it is done at once; the bound is for a libssh2 that errs. */
    for (int i = 0; session->libssh2 && i < 100; i++) {
        if (libssh2_session_free(session->libssh2) != LIBSSH2_ERROR_EAGAIN)
            session->libssh2 = NULL;
    }
    duplex_destroy(session->duplex);
    mem_free_at(&session->auth);
    known_hosts_destroy(session->known);
    buf_destroy(&session->problem);
    buf_destroy(&session->summary);
    buf_destroy(&session->host_key);
    mem_free_at(&session);
    errno = keep;
}

/* What a server says may hold anything. */
static void put_foreign(struct buf *out, const char *text)
{
    for (size_t i = 0; text[i] && i < FOREIGN_MAX; i++) {
        unsigned char c = (unsigned char)text[i];

        (void)buf_putc(out, c >= 0x20 && c < 0x7f ? (char)c : '?');
    }
}

static const char *libssh2_words(struct ssh_session *session)
{
    char *text = NULL;

    (void)libssh2_session_last_error(session->libssh2, &text, NULL, 0);
    return text && text[0] ? text : "libssh2 gives no reason";
}

static enum ssh_state stop(struct ssh_session *session, enum ssh_state state)
{
    if (session->state < SSH_STATE_FAILED)
        session->reached = session->state;
    session->state = state;
    return state;
}

static enum ssh_state fail(struct ssh_session *session, const char *while_doing)
{
    const char *cause = socket_cause(&session->socket);

    if (session->problem.length == 0 && cause)
        (void)buf_printf(&session->problem, "the connection was lost while %s: %s", while_doing,
                         cause);
    else if (session->problem.length == 0)
        (void)buf_printf(&session->problem, "%s: %s", while_doing, libssh2_words(session));
    return stop(session, SSH_STATE_FAILED);
}

/* What to do about a line that OpenSSH sends in place of a banner; NULL: it is something else. One
 * is for a server that is too busy; the other, since 9.8, for an address that failed to log in. */
static const char *turned_away(const char *line)
{
    if (strncmp(line, "Exceeded MaxStartups", 20) == 0)
        return "raise its MaxStartups or lower --ssh-window";
    if (strncmp(line, "Not allowed at this time", 24) == 0)
        return "logins from here have failed before: wait, or put this machine into its "
               "PerSourcePenaltyExemptList";
    return NULL;
}

static enum ssh_state handshake_failed(struct ssh_session *session, int rc)
{
    const char *banner = libssh2_session_banner_get(session->libssh2);
    const char *cause = socket_cause(&session->socket);

    if (session->socket.flooded) {
        (void)buf_printf(&session->problem,
                         "the program at port %d sends data without end, but no SSH banner: is it "
                         "the right port or proxy command?",
                         session->config.port);
        return stop(session, SSH_STATE_FAILED);
    }
    if (!banner && cause) {
        (void)buf_printf(&session->problem,
                         "the server closed the connection before its banner (%s): too many "
                         "connections at once? raise its MaxStartups or lower --ssh-window",
                         cause);
        return stop(session, SSH_STATE_AGAIN);
    }
    const char *remedy = banner ? turned_away(banner) : NULL;
    if (remedy) {
        (void)buf_puts(&session->problem, "the server refused this machine (");
        put_foreign(&session->problem, banner);
        (void)buf_printf(&session->problem, "): %s", remedy);
        return stop(session, SSH_STATE_AGAIN);
    }
    if (!banner || strncmp(banner, "SSH-", 4) != 0) {
        (void)buf_printf(&session->problem, "no SSH server answers at port %d",
                         session->config.port);
        if (banner) {
            (void)buf_puts(&session->problem, ", but something that says \"");
            put_foreign(&session->problem, banner);
            (void)buf_putc(&session->problem, '"');
        }
        (void)buf_puts(&session->problem, ": is it the right port? (--ssh-port)");
        return stop(session, SSH_STATE_FAILED);
    }
    if (cause)
        return fail(session, "exchanging keys");
    (void)buf_printf(&session->problem, "libssh2 %s and the server cannot agree (%s, error %d)",
                     libssh2_version(0), libssh2_words(session), rc);
    return stop(session, SSH_STATE_FALLBACK);
}

static enum ssh_state handshake(struct ssh_session *session)
{
    int rc = libssh2_session_handshake(session->libssh2, session->config.fd);

    if (rc == LIBSSH2_ERROR_EAGAIN)
        return session->state;
    return rc == 0 ? stop(session, SSH_STATE_HOST_KEY) : handshake_failed(session, rc);
}

static enum ssh_state check_host_key(struct ssh_session *session)
{
    switch (
        host_key_judge(session->libssh2, session->known, &session->config, &session->host_key)) {
    case HOST_KEY_ACCEPTED: return stop(session, SSH_STATE_AUTH);
    case HOST_KEY_FALLBACK:
        (void)buf_puts(&session->problem, buf_text(&session->host_key));
        return stop(session, SSH_STATE_FALLBACK);
    case HOST_KEY_REFUSED: break;
    }
    (void)buf_puts(&session->problem, buf_text(&session->host_key));
    return stop(session, SSH_STATE_FAILED);
}

static enum ssh_state authenticate(struct ssh_session *session)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);

    switch (auth_advance(session->auth, &text)) {
    case AUTH_WAIT: return session->state;
    case AUTH_DONE:
        (void)buf_printf(&session->summary, "%s, %s, %s", buf_text(&text),
                         buf_text(&session->host_key),
                         libssh2_session_methods(session->libssh2, LIBSSH2_METHOD_CRYPT_SC));
        return stop(session, SSH_STATE_CHANNEL);
    case AUTH_FALLBACK:
        (void)buf_puts(&session->problem, buf_text(&text));
        return stop(session, SSH_STATE_FALLBACK);
    case AUTH_REFUSED:
    case AUTH_BROKEN: break;
    }
    (void)buf_puts(&session->problem, buf_text(&text));
    return fail(session, "logging in");
}

static enum ssh_state open_channel(struct ssh_session *session)
{
    int rc;

    if (!session->exec) {
        session->channel =
            libssh2_channel_open_ex(session->libssh2, "session", sizeof "session" - 1,
                                    DUPLEX_WINDOW, DUPLEX_PACKET, NULL, 0);
        if (!session->channel &&
            libssh2_session_last_errno(session->libssh2) == LIBSSH2_ERROR_EAGAIN)
            return session->state;
        if (!session->channel)
            return fail(session, "opening a channel after the login");
        session->exec = true;
    }
    rc = libssh2_channel_process_startup(session->channel, "exec", sizeof "exec" - 1,
                                         session->config.command,
                                         (unsigned int)strlen(session->config.command));
    if (rc == LIBSSH2_ERROR_EAGAIN)
        return session->state;
    if (rc < 0)
        return fail(session, "starting a command on the host");
    session->socket.hold = true;
    session->socket.limited = false;
    session->duplex = duplex_create(session->libssh2, session->channel, &session->socket);
    return stop(session, SSH_STATE_OPEN);
}

static enum ssh_state advance_once(struct ssh_session *session)
{
    switch (session->state) {
    case SSH_STATE_HANDSHAKE: return handshake(session);
    case SSH_STATE_HOST_KEY: return check_host_key(session);
    case SSH_STATE_AUTH: return authenticate(session);
    case SSH_STATE_CHANNEL: return open_channel(session);
    case SSH_STATE_OPEN:
        (void)duplex_flush(session->duplex);
        duplex_notice_close(session->duplex);
        return session->state;
    case SSH_STATE_FAILED:
    case SSH_STATE_AGAIN:
    case SSH_STATE_FALLBACK: break;
    }
    return session->state;
}

static enum ssh_state session_advance(struct ssh_session *session)
{
    enum ssh_state before;

    do {
        before = session->state;
    } while (advance_once(session) != before);
    return session->state;
}

static enum ssh_state session_reached(const struct ssh_session *session)
{
    return session->reached;
}

static int session_wants(const struct ssh_session *session)
{
    int directions, wants = 0;

    if (session->state >= SSH_STATE_FAILED)
        return 0;
    if (session->duplex)
        return duplex_wants(session->duplex);
    directions = libssh2_session_block_directions(session->libssh2);
    if (directions & LIBSSH2_SESSION_BLOCK_OUTBOUND)
        wants |= SSH_WANT_WRITE;
    if (wants == 0 || (directions & LIBSSH2_SESSION_BLOCK_INBOUND))
        wants |= SSH_WANT_READ;
    return wants;
}

static const char *session_problem(const struct ssh_session *session)
{
    return buf_text(&session->problem);
}

static const char *session_summary(const struct ssh_session *session)
{
    return buf_text(&session->summary);
}

/* Keeps the words for a connection that broke, and hands the result on with its errno. */
static ssize_t told(struct ssh_session *session, ssize_t rc)
{
    int cause = errno;

    if (rc < 0 && cause != EAGAIN && session->problem.length == 0)
        (void)buf_printf(&session->problem, "the SSH connection was lost: %s",
                         socket_cause(&session->socket) ? socket_cause(&session->socket)
                                                        : libssh2_words(session));
    errno = cause;
    return rc;
}

static ssize_t session_read(struct ssh_session *session, enum ssh_channel channel, void *bytes,
                            size_t room)
{
    return told(session, duplex_read(session->duplex, channel, bytes, room));
}

static ssize_t session_write(struct ssh_session *session, const void *bytes, size_t length)
{
    return told(session, duplex_write(session->duplex, bytes, length));
}

static int session_send_eof(struct ssh_session *session)
{
    return (int)told(session, duplex_send_eof(session->duplex));
}

static int session_exit_status(const struct ssh_session *session)
{
    return session->duplex ? duplex_exit_status(session->duplex) : -1;
}

/* The table by which the launcher knows this module: its only symbol. */
__attribute__((visibility("default"))) const struct ssh_module hvdrun_ssh_module = {
    .version = SSH_MODULE_VERSION,
    .keys_create = keys_create,
    .keys_destroy = keys_destroy,
    .known_files_create = known_files_create,
    .known_files_destroy = known_files_destroy,
    .create = session_create,
    .destroy = session_destroy,
    .advance = session_advance,
    .wants = session_wants,
    .problem = session_problem,
    .summary = session_summary,
    .read = session_read,
    .write = session_write,
    .send_eof = session_send_eof,
    .exit_status = session_exit_status,
    .reached = session_reached,
};
