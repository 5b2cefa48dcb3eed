/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/folder.h"
#include "driver/control/request.h"
#include "io/loop.h"

/*
 * One connection to the control socket: requests in, one on a line, and their answers out. It reads
 * the next request when the client has taken the answer to the one before. It closes the connection
 * when the client closes it, sends a line beyond CONTROL_LINE_MAX, or does nothing for
 * CONTROL_IDLE_MS. A client that waits for the end of the job may do nothing for as long as it
 * likes, and must not send anything more.
 */

#define CONTROL_IDLE_MS 10000
struct control_peer;

struct control_peer_owner {
    /* Comes once, from the loop, unless the owner destroys the peer first. After it the owner
     * destroys the peer, at once or later. */
    void (*gone)(void *context, struct control_peer *peer);
    bool (*may_wait)(void *context); /* for the end of the job; false: too many do */
};

#define ANSWER_MAX ((size_t)256 << 20)
#define CHUNK ((size_t)4096)

struct control_peer {
    const struct control_answers *answers;
    bool by_root;
    int fd;
    struct loop_fd *ready;
    struct loop_timer *idle;
    struct buf in, out;
    bool at_end;                 /* the client has closed its half */
    bool waits;                  /* for the end of the job */
    struct control_later *later; /* the answer that is awaited; NULL */
    const struct control_peer_owner *owner;
    void *context;
};

static void leave(struct control_peer *peer)
{
    loop_timer_clear(peer->idle);
    loop_fd_watch(peer->ready, 0);
    peer->owner->gone(peer->context, peer);
}

static void idle_over(void *context)
{
    leave(context);
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

static void put_line(struct control_peer *peer, const json_t *reply)
{
    if (json_dump_callback(reply, append_piece, &peer->out, JSON_COMPACT) < 0) {
        buf_clear(&peer->out);
        buf_puts(&peer->out, "{\"error\":\"the answer is too long\"}");
    }
    buf_putc(&peer->out, '\n');
}

static int write_answers(struct control_peer *peer);

/* The loop may run no more. If it does, it takes the next request, or sees that the client has
 * gone. */
static void later_answered(void *context, const json_t *reply)
{
    struct control_peer *peer = context;
    peer->later = NULL;
    loop_timer_set(peer->idle, CONTROL_IDLE_MS);
    put_line(peer, reply);
    write_answers(peer);
    loop_fd_watch(peer->ready, LOOP_WRITE);
}

/* The client has asked, and waits: its socket has room for a short answer. */
static int give(void *context, const json_t *reply)
{
    struct control_peer *peer = context;
    peer->later = NULL;
    put_line(peer, reply);
    bool is_sent = write_answers(peer) == 0 && peer->out.length == 0;
    int fd = is_sent ? fcntl(peer->fd, F_DUPFD_CLOEXEC, 3) : -1;
    leave(peer);
    return fd;
}

static void answer(struct control_peer *peer, const char *line, size_t length)
{
    struct control_later *later = control_later_create(later_answered, give, peer);
    json_t *reply = control_request_answer(peer->answers, line, length, peer->by_root, later);
    if (reply == NULL && control_later_is_taken(later)) {
        peer->later = later;
        return;
    }
    control_later_leave(later);
    if (reply == NULL && peer->owner->may_wait(peer->context)) {
        peer->waits = true;
        return;
    }
    if (reply == NULL)
        reply = json_pack("{s:s}", "error", "too many clients wait for the end of this job");
    put_line(peer, reply);
    json_decref(reply);
}

static void answer_too_long(struct control_peer *peer)
{
    buf_printf(&peer->out, "{\"error\":\"the request has more than %zu bytes\"}\n",
               CONTROL_LINE_MAX);
    buf_clear(&peer->in);
    peer->at_end = true;
}

/* Answers one complete request; false: there is none. What the client sent before it closed its
 * half counts as a request too. */
static bool take_request(struct control_peer *peer)
{
    const char *text = buf_text(&peer->in);
    const char *end = memchr(text, '\n', peer->in.length);
    size_t length = end != NULL ? (size_t)(end - text) : peer->in.length;
    if (length > CONTROL_LINE_MAX) {
        answer_too_long(peer);
        return true;
    }
    if (end == NULL && (!peer->at_end || length == 0))
        return false;
    if (strspn(text, " \t\r\n") < length)
        answer(peer, text, length);
    buf_consume(&peer->in, end != NULL ? length + 1 : length);
    return true;
}

/* -1: the client has gone. */
static int write_answers(struct control_peer *peer)
{
    while (peer->out.length > 0) {
        ssize_t put = send(peer->fd, buf_text(&peer->out), peer->out.length, MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (put < 0 && errno != EINTR)
            return -1;
        if (put > 0)
            buf_consume(&peer->out, (size_t)put);
    }
    return 0;
}

/* -1: the client has gone. */
static int read_requests(struct control_peer *peer)
{
    char bytes[CHUNK];
    ssize_t got = fd_read(peer->fd, bytes, sizeof(bytes));
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    if (got == 0)
        peer->at_end = true;
    else
        buf_append(&peer->in, bytes, (size_t)got); /* take_request() keeps it within its limit */
    return 0;
}

static void arm(struct control_peer *peer)
{
    if (peer->out.length > 0) {
        loop_fd_watch(peer->ready, LOOP_WRITE);
    } else if (peer->later != NULL) {
        loop_fd_watch(peer->ready, 0);
    } else if (peer->waits) {
        loop_timer_clear(peer->idle);
        loop_fd_watch(peer->ready, LOOP_READ);
    } else if (!peer->at_end) {
        loop_fd_watch(peer->ready, LOOP_READ);
    } else {
        leave(peer);
    }
}

static void ready(void *context, int what)
{
    struct control_peer *peer = context;
    if (peer->waits) { /* the client has gone, or speaks out of turn */
        leave(peer);
        return;
    }
    bool wants_more = peer->out.length == 0 && !peer->at_end;
    loop_timer_set(peer->idle, CONTROL_IDLE_MS);
    if ((what & LOOP_READ) != 0 && wants_more && read_requests(peer) < 0) {
        leave(peer);
        return;
    }
    do {
        if (write_answers(peer) < 0) {
            leave(peer);
            return;
        }
    } while (peer->out.length == 0 && !peer->waits && peer->later == NULL && take_request(peer));
    arm(peer);
}

/* Takes `fd` over. `by_root`: the client is a process of root. */
static struct control_peer *control_peer_create_take(struct loop *loop, int fd, bool by_root,
                                                     const struct control_answers *answers,
                                                     const struct control_peer_owner *owner,
                                                     void *context)
{
    struct control_peer *peer = MEM_NEW((struct control_peer){
        .answers = answers, .by_root = by_root, .fd = fd, .owner = owner, .context = context});
    buf_init(&peer->in, CONTROL_LINE_MAX + CHUNK + 1);
    buf_init(&peer->out, ANSWER_MAX);
    peer->idle = loop_timer_create(loop, idle_over, peer);
    peer->ready = loop_fd_create(loop, fd, ready, peer);
    loop_timer_set(peer->idle, CONTROL_IDLE_MS);
    loop_fd_watch(peer->ready, LOOP_READ);
    return peer;
}

static bool control_peer_waits(const struct control_peer *peer)
{
    return peer->waits;
}

/* Answers a client that waits. It does not block; a client that does not read may miss the end. */
/* A client that waits has an empty socket, which has room for this line. */
static void control_peer_finish(struct control_peer *peer, const json_t *end)
{
    put_line(peer, end);
    write_answers(peer);
}

static void control_peer_destroy(struct control_peer *peer)
{
    if (peer == NULL)
        return;
    control_later_leave(peer->later);
    loop_fd_destroy(peer->ready);
    loop_timer_destroy(peer->idle);
    fd_close(&peer->fd);
    buf_destroy(&peer->in);
    buf_destroy(&peer->out);
    free(peer);
}

#define BACKLOG 64
#define AGAIN_MS 1000

struct control {
    struct loop *loop;
    struct control_answers answers;
    char *job;  /* in them: the record may end before the last request is answered */
    int folder; /* borrowed */
    char *name, *path;
    int fd;
    bool bound;
    struct loop_fd *ready;
    struct loop_timer *again; /* to listen again after the descriptors ran out */
    struct control_peer *peers[CONTROL_PEERS_MAX + CONTROL_WAITING_MAX];
    size_t count, waiting; /* waiting: those that wait for the end of the job */
};

static void listen_on(void *context)
{
    struct control *control = context;
    bool has_room = control->count - control->waiting < CONTROL_PEERS_MAX;
    loop_fd_watch(control->ready, has_room ? LOOP_READ : 0);
}

static bool may_wait(void *context)
{
    struct control *control = context;
    if (control->waiting == CONTROL_WAITING_MAX)
        return false;
    control->waiting++;
    listen_on(control);
    return true;
}

static void peer_gone(void *context, struct control_peer *peer)
{
    struct control *control = context;
    for (size_t i = 0; i < control->count; i++) {
        if (control->peers[i] != peer)
            continue;
        control->waiting -= control_peer_waits(peer);
        control_peer_destroy(peer);
        control->peers[i] = control->peers[--control->count];
        break;
    }
    listen_on(control);
}

static bool may_ask(int fd, bool *by_root)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof(peer);
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    *by_root = peer.uid == 0;
    return known && (peer.uid == geteuid() || *by_root);
}

static void connection_ready(void *context, int what)
{
    (void)what;
    struct control *control = context;
    int fd AUTO_FD = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        loop_fd_watch(control->ready, 0);
        loop_timer_set(control->again, AGAIN_MS);
    }
    bool by_root = false;
    if (fd < 0 || !may_ask(fd, &by_root))
        return;
    static const struct control_peer_owner owner = {.gone = peer_gone, .may_wait = may_wait};
    control->peers[control->count++] =
        control_peer_create_take(control->loop, fd, by_root, &control->answers, &owner, control);
    fd = -1;
    listen_on(control);
}

int control_address(int dir, const char *folder, const char *name, struct sockaddr_un *out)
{
    size_t room = sizeof(out->sun_path);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(out->sun_path, room, "%s/%s", folder, name);
    if (length > 0 && (size_t)length >= room)
        length = snprintf(out->sun_path, room, "/proc/self/fd/%d/%s", dir, name);
    if (length > 0 && (size_t)length < room)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* The socket has its mode from the start: bind(2) takes it from the descriptor. It gets its name
 * last, so that a client that sees the name can connect. */
static int listen_in(struct control *control, const char *folder, const char *new_name)
{
    struct sockaddr_un address;
    if (control_address(control->folder, folder, new_name, &address) < 0 ||
        fchmod(control->fd, 0600) < 0)
        return -1;
    unlinkat(control->folder, new_name, 0); /* of a driver with our pid that was killed */
    if (bind(control->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    control->bound = listen(control->fd, BACKLOG) == 0 &&
                     renameat(control->folder, new_name, control->folder, control->name) == 0;
    int errnum = errno;
    if (!control->bound)
        unlinkat(control->folder, new_name, 0);
    errno = errnum;
    return control->bound ? 0 : -1;
}

static int open_socket(struct control *control, struct error *err)
{
    const char *job = control->job;
    if (!name_is_safe(job, strlen(job)))
        return error_set(err, "the job id '%s' cannot be the name of a socket", job);
    char *folder AUTO_FREE = job_folder_path();
    char *new_name AUTO_FREE = mem_printf("%s" JOB_CONTROL_NEW_SUFFIX, job);
    control->name = mem_printf("%s" JOB_CONTROL_SUFFIX, job);
    control->path = mem_printf("%s/%s", folder, control->name);
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->fd < 0 || listen_in(control, folder, new_name) < 0)
        return error_errno(err, errno, "cannot create the control socket %s", control->path);
    return 0;
}

struct control *control_create(struct loop *loop, int folder, const struct control_answers *answers,
                               struct error *err)
{
    struct control *control =
        MEM_NEW((struct control){.loop = loop, .answers = *answers, .folder = folder, .fd = -1});
    control->job = mem_strdup(answers->job);
    control->answers.job = control->job;
    if (open_socket(control, err) < 0) {
        control_destroy(control);
        return NULL;
    }
    control->again = loop_timer_create(loop, listen_on, control);
    control->ready = loop_fd_create(loop, control->fd, connection_ready, control);
    listen_on(control);
    return control;
}

const char *control_path(const struct control *control)
{
    return control->path;
}

void control_finish(struct control *control, const json_t *end)
{
    for (size_t i = 0; i < control->count; i++) {
        if (control_peer_waits(control->peers[i]))
            control_peer_finish(control->peers[i], end);
    }
}

void control_destroy(struct control *control)
{
    if (control == NULL)
        return;
    for (size_t i = 0; i < control->count; i++)
        control_peer_destroy(control->peers[i]);
    loop_fd_destroy(control->ready);
    loop_timer_destroy(control->again);
    fd_close(&control->fd);
    /* Once more if there was no memory for it, or the like. */
    if (control->bound && unlinkat(control->folder, control->name, 0) < 0)
        unlinkat(control->folder, control->name, 0);
    free(control->job);
    free(control->name);
    free(control->path);
    free(control);
}
