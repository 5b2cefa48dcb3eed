/* SPDX-License-Identifier: Apache-2.0 */
#include "io/folder_watch.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/inotify.h>

#include "base/fd.h"
#include "base/mem.h"

#define BATCHES 64 /* of events in one call: a flood of them must not hold up the loop */

struct folder_watch {
    int fd;
    struct loop_fd *watch;
    void (*changed)(void *context, const char *name);
    void (*ready)(void *context);
    void *context;
};

static void readable(void *context, int what)
{
    const struct folder_watch *watch = context;
    (void)what;
    watch->ready(watch->context);
}

struct folder_watch *folder_watch_create(struct loop *loop, const char *folder,
                                         void (*changed)(void *context, const char *name),
                                         void (*ready)(void *context), void *context)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (inotify_add_watch(fd, folder, IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
        fd_close(&fd);
        return NULL;
    }
    struct folder_watch *watch = mem_alloc(sizeof(*watch));
    *watch =
        (struct folder_watch){.fd = fd, .changed = changed, .ready = ready, .context = context};
    watch->watch = loop_fd_create(loop, fd, readable, watch);
    return watch;
}

void folder_watch_destroy(struct folder_watch *watch)
{
    if (watch == NULL)
        return;
    loop_fd_destroy(watch->watch);
    fd_close(&watch->fd);
    free(watch);
}

void folder_watch_listen(struct folder_watch *watch, bool on)
{
    loop_fd_watch(watch->watch, on ? LOOP_READ : 0);
}

static void take(const struct folder_watch *watch, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        const struct inotify_event *event =
            (const struct inotify_event *)(const void *)(bytes + at);
        if ((event->mask & IN_Q_OVERFLOW) != 0)
            watch->changed(watch->context, NULL);
        else if (event->len > 0)
            watch->changed(watch->context, event->name);
        at += sizeof(*event) + event->len;
    }
}

void folder_watch_read(struct folder_watch *watch)
{
    char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
        __attribute__((aligned(__alignof__(struct inotify_event))));
    for (int i = 0; i < BATCHES; i++) {
        ssize_t got = fd_read(watch->fd, bytes, sizeof(bytes));
        if (got <= 0)
            return;
        take(watch, bytes, (size_t)got);
    }
}
