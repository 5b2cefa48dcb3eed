/* SPDX-License-Identifier: Apache-2.0 */
#include "io/watch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define LINKS_MAX 40 /* as the kernel's own limit */
/* Of a folder: what comes and goes in it, and that a file in it has been written. */
#define FOLDER_MASK \
    (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ONLYDIR)
/* Of the file itself, since it may be written under another name. */
#define FILE_MASK (IN_MODIFY | IN_CLOSE_WRITE | IN_MOVE_SELF | IN_DELETE_SELF)

/* Something of interest: a name in a folder, or (NULL) the file itself. */
struct interest {
    int id; /* of the kernel's watch; several names in one folder share it */
    char *name;
};

struct watch {
    char *path;
    int fd; /* -1: there is no inotify */
    struct loop_fd *ready;
    struct interest *items;
    size_t count, room;
    void (*changed)(void *context, bool whole);
    void *context;
};

static void add_interest(struct watch *watch, const char *path, uint32_t mask, const char *name)
{
    int id = inotify_add_watch(watch->fd, path, mask | IN_MASK_ADD);
    if (id < 0)
        return; /* the owner looks now and then */
    MEM_ADD_ROOM(watch->items, watch->count, watch->room) = (struct interest){id, mem_strdup(name)};
}

static void forget_interests(struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        inotify_rm_watch(watch->fd, watch->items[i].id); /* once more for a shared one: no harm */
        free(watch->items[i].name);
    }
    watch->count = 0;
}

/* What the symbolic link `path` holds (the caller's), or NULL: it is none. */
static char *read_link(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof(target));
    if (length <= 0 || (size_t)length == sizeof(target))
        return NULL;
    return mem_strndup(target, (size_t)length);
}

/* Walks down the path as the kernel does. `*walked` is the part without links that lies behind,
 * `*rest` what is ahead; one name goes over from one to the other, or a link is put in its place.
 * False: the end of the path. */
static bool walk(struct watch *watch, char **walked, char **rest, int *links)
{
    const char *at = *rest + strspn(*rest, "/");
    size_t length = strcspn(at, "/");
    if (length == 0)
        return false;
    char *name AUTO_FREE = mem_strndup(at, length);
    const char *after = at + length;
    bool root = (*walked)[0] == '/' && (*walked)[1] == '\0';
    char *whole AUTO_FREE = mem_printf("%s%s%s", *walked, root ? "" : "/", name);
    char *target AUTO_FREE = *links < LINKS_MAX ? read_link(whole) : NULL;
    bool last = after[strspn(after, "/")] == '\0';
    if (target != NULL || last)
        add_interest(watch, *walked, FOLDER_MASK, name);
    char *ahead;
    if (target == NULL) {
        ahead = mem_strdup(after);
        mem_free_at(walked);
        *walked = mem_strdup(whole);
    } else {
        (*links)++;
        ahead = mem_printf("%s/%s", target, after);
        if (target[0] == '/') {
            mem_free_at(walked);
            *walked = mem_strdup("/");
        }
    }
    free(*rest);
    *rest = ahead;
    return true;
}

void watch_refresh(struct watch *watch)
{
    if (watch->fd < 0)
        return;
    forget_interests(watch);
    char *walked AUTO_FREE = mem_strdup(watch->path[0] == '/' ? "/" : ".");
    char *rest AUTO_FREE = mem_strdup(watch->path);
    int links = 0;
    while (walk(watch, &walked, &rest, &links)) {
    }
    add_interest(watch, watch->path, FILE_MASK, NULL);
}

enum { NOTHING = 0, WRITTEN = 1, WHOLE = 2, MOVED = 4 };

/* What an event means for the file; MOVED: the way to it may be another one. */
static int judge(const struct watch *watch, const struct inotify_event *event)
{
    if ((event->mask & IN_Q_OVERFLOW) != 0)
        return WHOLE | MOVED;
    const char *name = event->len > 0 ? event->name : NULL;
    int what = NOTHING;
    for (size_t i = 0; i < watch->count; i++) {
        const struct interest *item = &watch->items[i];
        bool same =
            name == NULL || item->name == NULL ? name == item->name : strcmp(name, item->name) == 0;
        if (item->id != event->wd || !same || (event->mask & IN_IGNORED) != 0)
            continue;
        if ((event->mask & (IN_CREATE | IN_MODIFY)) != 0)
            what |= WRITTEN;
        if ((event->mask & ~(uint32_t)(IN_CREATE | IN_MODIFY)) != 0)
            what |= WHOLE;
        if ((event->mask & (IN_MODIFY | IN_CLOSE_WRITE)) == 0)
            what |= MOVED;
    }
    return what;
}

static void events_ready(void *context, int ready)
{
    (void)ready;
    struct watch *watch = context;
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t got = fd_read(watch->fd, bytes, sizeof(bytes));
    int what = NOTHING, last = NOTHING;
    for (ssize_t at = 0; at < got;) {
        const struct inotify_event *event =
            (const struct inotify_event *)(const void *)(bytes + at);
        int now = judge(watch, event);
        if ((now & (WRITTEN | WHOLE)) != 0)
            last = now;
        what |= now;
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    /* First the new way, then the word: what happens after the owner's look is heard again. */
    if ((what & MOVED) != 0)
        watch_refresh(watch);
    if (what != NOTHING)
        watch->changed(watch->context, (last & WHOLE) != 0);
}

struct watch *watch_create(struct loop *loop, const char *path,
                           void (*changed)(void *context, bool whole), void *context)
{
    struct watch *watch = MEM_NEW((struct watch){.path = mem_strdup(path),
                                                 .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                                                 .changed = changed,
                                                 .context = context});
    if (watch->fd < 0)
        return watch;
    watch->ready = loop_fd_create(loop, watch->fd, events_ready, watch);
    loop_fd_watch(watch->ready, LOOP_READ);
    watch_refresh(watch);
    return watch;
}

void watch_destroy(struct watch *watch)
{
    if (watch == NULL)
        return;
    loop_fd_destroy(watch->ready);
    forget_interests(watch);
    fd_close(&watch->fd);
    free(watch->items);
    free(watch->path);
    free(watch);
}
