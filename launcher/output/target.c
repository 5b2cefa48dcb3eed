/* SPDX-License-Identifier: Apache-2.0 */
#include "output/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define LARGE (64u << 10) /* bytes at once, after which a reader's pipe is made larger */
#define WIDE (256 << 10)
#define GIVE_UP_MS 500 /* how long a wait may go on before give_up is looked at */

struct output_target *target_descriptor(int fd, const char *name)
{
    struct output_target *target = mem_alloc(sizeof(*target));
    target->fd = fd;
    target->path = mem_strdup(name);
    return target;
}

struct output_target *target_file(const char *path, bool append, bool folders)
{
    struct output_target *target = target_descriptor(-1, path);
    target->is_file = true;
    target->append = append;
    target->folders = folders;
    return target;
}

struct output_target *target_whole_file(const char *path,
                                        void (*failed)(void *context, const char *path, int errnum),
                                        void *context)
{
    struct output_target *target = target_file(path, false, true);
    target->failed = failed;
    target->failed_context = context;
    target->part = mem_printf("%s.part", path);
    return target;
}

struct output_target *target_new_file(const char *path)
{
    struct output_target *target = target_file(path, false, false);
    target->part = mem_printf("%s.part", path);
    target->in_place = true;
    return target;
}

void target_destroy(struct output_target *target)
{
    if (target == NULL)
        return;
    free(target->path);
    free(target->part);
    free(target);
}

static void unlink_open(struct output_target_set *set, struct output_target *target)
{
    if (target->newer != NULL)
        target->newer->older = target->older;
    else
        set->newest = target->older;
    if (target->older != NULL)
        target->older->newer = target->newer;
    else
        set->oldest = target->newer;
    target->newer = target->older = NULL;
    set->open--;
}

static void link_open(struct output_target_set *set, struct output_target *target)
{
    target->older = set->newest;
    if (set->newest != NULL)
        set->newest->newer = target;
    else
        set->oldest = target;
    set->newest = target;
    set->open++;
}

/* Some file systems (NFS, quotas) report a failed write only here. */
static void shut(struct output_target_set *set, struct output_target *target)
{
    unlink_open(set, target);
    int result = close(target->fd);
    target->fd = -1;
    if (result != 0 && errno != EINTR && target->errnum == 0)
        target->errnum = errno;
}

/* 0, or errno of the last folder that could not be made. */
static int make_folders(const char *path, mode_t mode)
{
    int errnum = 0;
    char *copy = mem_strdup(path);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, mode) < 0)
            errnum = errno == EEXIST ? 0 : errno;
        *slash = '/';
    }
    free(copy);
    return errnum;
}

/* Something other than a file has this name, and must keep it. */
static bool must_stay(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static void write_in_place(struct output_target *target)
{
    free(target->part);
    target->part = NULL;
}

static int try_open(struct output_target *target)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
    flags |= target->append ? O_APPEND : O_TRUNC;
    if (target->part != NULL && target->in_place && must_stay(target->path))
        write_in_place(target);
    if (target->part == NULL)
        return fd_open(target->path, flags, 0666);
    int fd = fd_open(target->part, flags | O_NOFOLLOW, target->in_place ? 0666 : 0600);
    if (fd >= 0 || !target->in_place || (errno != EACCES && errno != ENAMETOOLONG))
        return fd;
    write_in_place(target);
    return fd_open(target->path, flags, 0666);
}

static void open_with_folders(struct output_target *target)
{
    int errnum = make_folders(target->path, target->part != NULL ? 0700 : 0777);
    target->fd = try_open(target);
    if (target->fd < 0 && errno == ENOENT && errnum != 0)
        errno = errnum; /* says why the folder is not there */
}

static int open_file(struct output_target_set *set, struct output_target *target)
{
    if (set->open >= set->open_max && set->oldest != NULL)
        shut(set, set->oldest);
    target->fd = try_open(target);
    if (target->fd < 0 && errno == ENOENT && target->folders)
        open_with_folders(target);
    while (target->fd < 0 && (errno == EMFILE || errno == ENFILE) && set->oldest != NULL) {
        shut(set, set->oldest);
        target->fd = try_open(target);
    }
    if (target->fd < 0)
        return -1;
    target->append = true; /* from now on */
    link_open(set, target);
    return 0;
}

/* Other processes share the descriptor and may have made it non-blocking. */
static int wait_writable(const struct output_target_set *set, int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
    for (;;) {
        int ready = poll(&pollfd, 1, GIVE_UP_MS);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return -1;
        if (atomic_load(set->give_up)) {
            errno = ECANCELED;
            return -1;
        }
    }
}

static int write_all(const struct output_target_set *set, int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        } else if (written == 0) {
            errno = EIO;
            return -1;
        } else if (errno == EAGAIN) {
            if (wait_writable(set, fd) != 0)
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
        if (atomic_load(set->give_up) && length > 0) {
            errno = ECANCELED;
            return -1;
        }
    }
    return 0;
}

/* So the reader and we work in parallel more. As far as the system allows it. */
static void widen(struct output_target *target)
{
    target->wide = true;
    int size = fcntl(target->fd, F_GETPIPE_SZ);
    if (size > 0 && size < WIDE)
        (void)fcntl(target->fd, F_SETPIPE_SZ, WIDE);
}

/* -1 the first time that it is asked about a target that has failed. */
static int report_once(struct output_target *target)
{
    bool news = target->errnum != 0 && !target->reported;
    target->reported = target->errnum != 0;
    return news ? -1 : 0;
}

static int fail(struct output_target_set *set, struct output_target *target)
{
    target->errnum = errno;
    if (target->is_file && target->fd >= 0)
        shut(set, target);
    if (target->part != NULL)
        unlink(target->part);
    return report_once(target);
}

int target_write(struct output_target_set *set, struct output_target *target, const char *bytes,
                 size_t length)
{
    if (target->errnum != 0 || target->closed)
        return report_once(target);
    if (target->is_file && target->fd < 0) {
        if (open_file(set, target) != 0)
            return fail(set, target);
    } else if (target->is_file && set->newest != target) {
        unlink_open(set, target);
        link_open(set, target);
    }
    if (length >= LARGE && !target->is_file && !target->wide)
        widen(target);
    return write_all(set, target->fd, bytes, length) == 0 ? 0 : fail(set, target);
}

/* Gives a file its name if it is whole. */
static void settle(struct output_target *target)
{
    if (target->part == NULL || target->closed)
        return;
    if (target->errnum == 0 && rename(target->part, target->path) < 0)
        target->errnum = errno;
    if (target->errnum != 0)
        unlink(target->part);
}

int target_end(struct output_target_set *set, struct output_target *target, enum target_end end)
{
    if (target->is_file && target->fd >= 0)
        shut(set, target);
    if (end != TARGET_REST) {
        settle(target);
        target->closed = true;
    }
    if (end == TARGET_REMOVE)
        unlink(target->path);
    return report_once(target);
}

void target_abandon(struct output_target_set *set, struct output_target *target)
{
    if (target->part != NULL && !target->closed && target->errnum == 0)
        target->errnum = ECANCELED;
    (void)target_end(set, target, TARGET_CLOSE);
}
