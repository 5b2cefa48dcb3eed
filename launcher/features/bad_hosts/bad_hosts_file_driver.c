/* SPDX-License-Identifier: Apache-2.0 */
#include "features/bad_hosts/bad_hosts_file_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/thread_share.h"

#define TURNS_MAX 100 /* of other jobs that put a new file in its place before us */

/* Shared with the thread; the last one frees it. */
struct bad_hosts_write {
    struct thread_share share;
    bool over;
    char *path;
    struct bad_host_list news;
    int64_t now_s;
    int result;
    struct error err;
};

/* The file may have been replaced while we waited for the lock. */
static int open_locked(const char *path, struct error *err)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        struct stat ours, named;
        int fd = fd_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd < 0)
            return error_errno(err, errno, "cannot open %s", path);
        int locked = (int)TEMP_FAILURE_RETRY(flock(fd, LOCK_EX));
        if (locked < 0)
            error_errno(err, errno, "cannot lock %s", path);
        else if (fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
                 ours.st_dev == named.st_dev)
            return fd;
        fd_close(&fd);
        if (locked < 0)
            return -1;
    }
    return error_set(err, "cannot lock %s: other jobs replace it again and again", path);
}

/* The name is new each time: what a job left that was killed here may belong to another user. */
static int put_in_place(const char *path, const struct stat *before, const struct buf *text,
                        struct error *err)
{
    char *part AUTO_FREE =
        mem_printf("%s.new-%d-%lld", path, (int)getpid(), (long long)clock_wall_ns());
    int fd AUTO_FD = fd_open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, "cannot create %s", part);
    (void)!fchown(fd, (uid_t)-1, before->st_gid); /* only members of the group may */
    if (fd_write_all(fd, buf_text(text), text->length) == 0 &&
        fchmod(fd, before->st_mode & 0777) == 0 && fsync(fd) == 0 && rename(part, path) == 0)
        return 0;
    error_errno(err, errno, "cannot write %s", path);
    unlink(part);
    return -1;
}

int bad_hosts_write_now(const char *path, const struct bad_host_list *news, int64_t now_s,
                        struct error *err)
{
    struct buf before AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    struct buf after AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    struct stat info;
    int fd AUTO_FD = open_locked(path, err);
    if (fd < 0)
        return -1;
    char *name AUTO_FREE = realpath(path, NULL); /* a link stays, and leads to the new file */
    if (name == NULL || fstat(fd, &info) < 0)
        return error_errno(err, errno, "cannot read %s", path);
    if (!S_ISREG(info.st_mode))
        return error_set(err, "%s is not a file", path);
    if (fd_read_file(name, &before, err) < 0)
        return -1;
    if (bad_hosts_update(buf_text(&before), before.length, news, now_s, &after) < 0)
        return error_set(err, "%s is larger than %zu bytes", path, BAD_HOSTS_FILE_MAX);
    return put_in_place(name, &info, &after, err);
}

/* With the mutex locked, which it unlocks. */
static void leave(struct bad_hosts_write *write)
{
    if (!thread_share_leave(&write->share))
        return;
    bad_hosts_destroy(&write->news);
    free(write->path);
    free(write);
}

/* With the mutex locked. */
static void end(struct bad_hosts_write *write, int result, const struct error *err)
{
    write->result = result;
    write->err = *err;
    write->over = true;
    pthread_cond_signal(&write->share.changed);
}

static void *run(void *context)
{
    struct bad_hosts_write *write = context;
    struct error err = ERROR_INIT;
    int result = bad_hosts_write_now(write->path, &write->news, write->now_s, &err);
    thread_share_lock(&write->share);
    end(write, result, &err);
    leave(write);
    return NULL;
}

struct bad_hosts_write *bad_hosts_write_begin(const char *path, struct bad_host_list *news,
                                              int64_t now_s)
{
    struct bad_hosts_write *write = mem_alloc(sizeof(*write));
    *write = (struct bad_hosts_write){.path = mem_strdup(path), .news = *news, .now_s = now_s};
    *news = (struct bad_host_list){.count = 0};
    thread_share_init(&write->share);
    int code = thread_share_start(&write->share, "bad-hosts", run, write);
    if (code == 0)
        return write;
    struct error err = ERROR_INIT;
    error_errno(&err, code, "cannot start a thread that writes %s", path);
    end(write, -1, &err); /* nobody else holds it */
    return write;
}

bool bad_hosts_write_wait(struct bad_hosts_write *write, int64_t limit_ms)
{
    int64_t until_ms = clock_mono_ms() + limit_ms;
    thread_share_lock(&write->share);
    while (!write->over && limit_ms > 0 && thread_share_wait(&write->share, until_ms)) {
    }
    bool over = write->over;
    thread_share_unlock(&write->share);
    return over;
}

const struct bad_host_list *bad_hosts_write_news(const struct bad_hosts_write *write)
{
    return &write->news;
}

int bad_hosts_write_result(const struct bad_hosts_write *write, struct error *err)
{
    *err = write->err;
    return write->result;
}

void bad_hosts_write_destroy(struct bad_hosts_write *write)
{
    if (write == NULL)
        return;
    thread_share_lock(&write->share);
    leave(write);
}
