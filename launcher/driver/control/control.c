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
#include "driver/control/peer.h"
#include "node/runtime_dir.h"

#define BACKLOG 64
#define AGAIN_MS 1000

struct control {
    struct loop *loop;
    const struct control_ops *ops;
    void *context;
    struct runtime_dir *dir;
    char *path;
    int fd;
    struct loop_fd *ready;
    struct loop_timer *again; /* to listen again after the descriptors ran out */
    struct control_peer *peers[CONTROL_PEERS_MAX];
    size_t count;
};

static void listen_on(void *context)
{
    struct control *control = context;
    loop_fd_watch(control->ready, control->count < CONTROL_PEERS_MAX ? LOOP_READ : 0);
}

static void peer_gone(void *context, struct control_peer *peer)
{
    struct control *control = context;
    for (size_t i = 0; i < control->count; i++) {
        if (control->peers[i] != peer)
            continue;
        control_peer_destroy(peer);
        control->peers[i] = control->peers[--control->count];
        break;
    }
    listen_on(control);
}

static bool may_ask(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof(peer);
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    return known && (peer.uid == geteuid() || peer.uid == 0);
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
    if (fd < 0 || !may_ask(fd))
        return;
    control->peers[control->count++] = control_peer_create_take(
        control->loop, fd, control->ops, control->context, peer_gone, control);
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

/* The socket has its mode from the start: bind(2) takes it from the descriptor. */
static int bind_in(const struct control *control, const char *name)
{
    struct sockaddr_un address;
    const char *folder = runtime_dir_path(control->dir);
    int dir AUTO_FD = fd_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0 || control_address(dir, folder, name, &address) < 0)
        return -1;
    if (fchmod(control->fd, 0600) < 0)
        return -1;
    return bind(control->fd, (const struct sockaddr *)&address, sizeof(address));
}

static int open_socket(struct control *control, const char *job_id, struct error *err)
{
    if (!name_is_safe(job_id, strlen(job_id)))
        return error_set(err, "the job id '%s' cannot be the name of a socket", job_id);
    control->dir = runtime_dir_create(err);
    if (control->dir == NULL)
        return -1;
    char *name AUTO_FREE = mem_printf("%s" CONTROL_SUFFIX, job_id);
    control->path = mem_printf("%s/%s", runtime_dir_path(control->dir), name);
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->fd < 0 || bind_in(control, name) < 0 || listen(control->fd, BACKLOG) < 0)
        return error_errno(err, errno, "cannot create the control socket %s", control->path);
    return 0;
}

struct control *control_create(struct loop *loop, const char *job_id, const struct control_ops *ops,
                               void *context, struct error *err)
{
    struct control *control = mem_alloc(sizeof(*control));
    *control = (struct control){.loop = loop, .ops = ops, .context = context, .fd = -1};
    if (open_socket(control, job_id, err) < 0) {
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

void control_destroy(struct control *control)
{
    if (control == NULL)
        return;
    for (size_t i = 0; i < control->count; i++)
        control_peer_destroy(control->peers[i]);
    loop_fd_destroy(control->ready);
    loop_timer_destroy(control->again);
    fd_close(&control->fd);
    runtime_dir_destroy(control->dir);
    free(control->path);
    free(control);
}
