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

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/folder.h"
#include "driver/control/peer.h"

#define BACKLOG 64
#define AGAIN_MS 1000

struct control {
    struct loop *loop;
    const struct control_ops *ops;
    void *context;
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
    control->peers[control->count++] = control_peer_create_take(
        control->loop, fd, by_root, control->ops, control->context, &owner, control);
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

static int open_socket(struct control *control, const char *job, struct error *err)
{
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

struct control *control_create(struct loop *loop, int folder, const char *job,
                               const struct control_ops *ops, void *context, struct error *err)
{
    struct control *control = mem_alloc(sizeof(*control));
    *control =
        (struct control){.loop = loop, .ops = ops, .context = context, .folder = folder, .fd = -1};
    if (open_socket(control, job, err) < 0) {
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
    free(control->name);
    free(control->path);
    free(control);
}
