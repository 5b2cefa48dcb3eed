/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
    if (*fd < 0)
        return;
    int saved = errno;
    close(*fd);
    errno = saved;
    *fd = -1;
}

void fd_close_pair(int (*ends)[2])
{
    fd_close(&(*ends)[0]);
    fd_close(&(*ends)[1]);
}

int fd_open(const char *path, int flags, mode_t mode)
{
    return (int)TEMP_FAILURE_RETRY(open(path, flags, mode));
}

int fd_open_regular(const char *path)
{
    char again[48];
    struct stat info;
    int found AUTO_FD = fd_open(path, O_PATH | O_CLOEXEC, 0);
    if (found < 0 || fstat(found, &info) < 0)
        return -1;
    if (!S_ISREG(info.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    /* a thread can have a table of its own */
    snprintf(again, sizeof(again), "/proc/thread-self/fd/%d", found);
    return fd_open(again, O_RDONLY | O_CLOEXEC, 0);
}

int fd_openat(int folder, const char *path, int flags)
{
    return (int)TEMP_FAILURE_RETRY(openat(folder, path, flags));
}

int fd_dup2(int from, int to)
{
    return (int)TEMP_FAILURE_RETRY(dup2(from, to));
}

/* The kernel has close_range() since 5.9. If a sandbox refuses it, this closes each descriptor
 * separately. */
void fd_close_others(int keep)
{
    if ((keep == 3 || close_range(3, (unsigned)keep - 1, 0) == 0) &&
        close_range((unsigned)keep + 1, ~0u, 0) == 0)
        return;
    long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (limit > 0 ? limit : 1024); fd++) {
        if (fd != keep)
            close(fd);
    }
}

int fd_own_table(int keep)
{
    if (close_range((unsigned)keep + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        return -1;
    (void)close_range(0, (unsigned)keep - 1, 0);
    for (int i = 0; i < 3; i++)
        (void)fd_open("/dev/null", O_RDWR, 0);
    return 0;
}

bool fd_reserve(size_t count)
{
    int highest = count > INT_MAX ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)count);
    bool reserved = highest >= 0;
    fd_close(&highest);
    return reserved;
}

int fd_nonblock(int fd)
{
    int on = 1;
    return ioctl(fd, FIONBIO,
                 &on); /* one system call; fcntl() would need two for each stream of a rank */
}

int fd_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

int fd_socketpair(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

int fd_connect_errno(int fd)
{
    int errnum = 0;
    socklen_t length = sizeof(errnum);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &length) < 0 ? errno : errnum;
}

ssize_t fd_read(int fd, void *bytes, size_t length)
{
    return TEMP_FAILURE_RETRY(read(fd, bytes, length));
}

ssize_t fd_pread(int fd, void *bytes, size_t length, off_t offset)
{
    size_t all = 0;
    while (all < length) {
        ssize_t got = pread(fd, (char *)bytes + all, length - all, offset + (off_t)all);
        if (got < 0 && errno != EINTR)
            return all > 0 ? (ssize_t)all : -1;
        if (got == 0)
            break;
        all += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)all;
}

ssize_t fd_write(int fd, const void *bytes, size_t length)
{
    return TEMP_FAILURE_RETRY(write(fd, bytes, length));
}

int fd_write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t put = fd_write(fd, at, length);
        if (put < 0)
            return -1;
        at += put;
        length -= (size_t)put;
    }
    return 0;
}

int fd_send_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t put = send(fd, at, length, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        at += put;
        length -= (size_t)put;
    }
    return 0;
}

int fd_read_rest(int fd, struct buf *out)
{
    char chunk[16384];
    ssize_t got = fd_read(fd, chunk, sizeof(chunk));
    while (got > 0 && buf_append(out, chunk, (size_t)got) == 0)
        got = fd_read(fd, chunk, sizeof(chunk));
    if (got > 0)
        errno = EFBIG;
    return got == 0 ? 0 : -1;
}

int fd_read_file(const char *path, struct buf *out, struct error *err)
{
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, errno, "cannot open %s", path);
    if (fd_read_rest(fd, out) == 0)
        return 0;
    if (errno == EFBIG)
        return error_set(err, "%s is larger than %zu bytes", path, out->limit);
    return error_errno(err, errno, "cannot read %s", path);
}

struct file_stamp file_stamp_of_stat(const struct stat *status)
{
    return (struct file_stamp){.device = status->st_dev,
                               .inode = status->st_ino,
                               .size = status->st_size,
                               .modified = status->st_mtim,
                               .changed = status->st_ctim};
}

struct file_stamp file_stamp_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct file_stamp){.size = 0};
    return file_stamp_of_stat(&status);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(&a->modified, &b->modified) && same_time(&a->changed, &b->changed);
}
