/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"

enum { EVENTS = 16 };
#define STOP UINT64_MAX

struct watch {
    int epoll, stop;
    void (*gone)(void *context, int32_t set, int rank);
    void *context;
    pthread_t thread;
};

static void *run(void *argument)
{
    const struct watch *watch = argument;
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(watch->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            uint64_t who = events[i].data.u64;
            if (who == STOP)
                return NULL;
            watch->gone(watch->context, (int32_t)(who >> 32), (int)(uint32_t)who);
        }
    }
}

static void watch_free(struct watch *watch)
{
    fd_close(&watch->epoll);
    fd_close(&watch->stop);
    free(watch);
}

struct watch *watch_start(void (*gone)(void *context, int32_t set, int rank), void *context,
                          struct error *err)
{
    struct watch *watch = mem_alloc(sizeof *watch);
    struct epoll_event stop = {.events = EPOLLIN, .data.u64 = STOP};
    *watch = (struct watch){.gone = gone, .context = context};
    watch->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ready = watch->epoll >= 0 && watch->stop >= 0 &&
                 epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->stop, &stop) == 0;
    int code = ready ? thread_start(&watch->thread, "hvd-watch", run, watch) : errno;
    if (code == 0)
        return watch;
    error_errno(err, code, "cannot watch the connections of the process sets");
    watch_free(watch);
    return NULL;
}

void watch_stop(struct watch *watch)
{
    const uint64_t one = 1;
    if (watch == NULL)
        return;
    ssize_t done = fd_write(watch->stop, &one, sizeof one);
    (void)done;
    pthread_join(watch->thread, NULL);
    watch_free(watch);
}

/* Edge-triggered: an end that another thread deals with does not come again and again. */
void watch_add(struct watch *watch, int fd, int32_t set, int rank)
{
    struct epoll_event end = {.events = EPOLLRDHUP | EPOLLET,
                              .data.u64 = (uint64_t)(uint32_t)set << 32 | (uint32_t)rank};
    int rc = epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &end);
    (void)rc; /* without it, the engine notices later */
}
