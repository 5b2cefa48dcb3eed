/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/dial_listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/tcp_options.h"

enum {
    BACKLOG = 4096,
    ACCEPTS_PER_TURN = 32,
    FULL_MS = 200,    /* to wait when no descriptor is free */
    FULL_ROUNDS = 30, /* longer than strangers may stay */
};

struct dial_listener {
    const struct dial_listener_ops *ops;
    void *context;
    int fd, port;
    struct loop_fd *watch;
    struct loop_timer *full;
    int full_rounds; /* in each of them, connections waited */
};

static void again(void *context)
{
    const struct dial_listener *listener = context;
    loop_fd_watch(listener->watch, LOOP_READ);
}

static void be_full(struct dial_listener *listener, const char *cause)
{
    loop_fd_watch(listener->watch, 0);
    loop_timer_set(listener->full, FULL_MS);
    int round = ++listener->full_rounds;
    bool for_long = round % FULL_ROUNDS == 0;
    if (round == 1 || for_long)
        listener->ops->full(listener->context, cause, for_long);
}

static void accept_some(void *context, int what)
{
    struct dial_listener *listener = context;
    (void)what;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof(address);
        int fd = accept4(listener->fd, (struct sockaddr *)&address, &length,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->ops->accepted(listener->context, fd, &address);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (i == 0) /* else perhaps no connection waits: descriptors come first */
                be_full(listener, strerror(errno));
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            listener->full_rounds = 0;
            return;
        } /* else that one has gone again */
    }
}

struct dial_listener *dial_listener_create(struct loop *loop, int port,
                                           const struct dial_listener_ops *ops, void *context,
                                           struct error *err)
{
    int bound;
    int fd = tcp_listen(port, BACKLOG, &bound);
    if (fd < 0 && port == 0) {
        error_errno(err, errno, "cannot open a port for agents to dial back to");
        return NULL;
    }
    if (fd < 0) {
        error_errno(err, errno,
                    "cannot open port %d, where agents dial in (--dial-port, or the address of a "
                    "torchrun line: has another copy node rank 0, too?)",
                    port);
        return NULL;
    }
    struct dial_listener *listener = mem_alloc(sizeof(*listener));
    *listener = (struct dial_listener){.ops = ops, .context = context, .fd = fd, .port = bound};
    listener->full = loop_timer_create(loop, again, listener);
    listener->watch = loop_fd_create(loop, fd, accept_some, listener);
    loop_fd_watch(listener->watch, LOOP_READ);
    return listener;
}

void dial_listener_destroy(struct dial_listener *listener)
{
    if (listener == NULL)
        return;
    loop_fd_destroy(listener->watch);
    loop_timer_destroy(listener->full);
    fd_close(&listener->fd);
    free(listener);
}

int dial_listener_port(const struct dial_listener *listener)
{
    return listener->port;
}
