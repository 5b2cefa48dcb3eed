/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
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

void fd_close_at(int *fd)
{
    fd_close(fd);
}

int fd_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int fd_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

int fd_socketpair(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

ssize_t fd_read(int fd, void *bytes, size_t length)
{
    ssize_t got;
    do {
        got = read(fd, bytes, length);
    } while (got < 0 && errno == EINTR);
    return got;
}

ssize_t fd_write(int fd, const void *bytes, size_t length)
{
    ssize_t put;
    do {
        put = write(fd, bytes, length);
    } while (put < 0 && errno == EINTR);
    return put;
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

int fd_read_file(const char *path, struct buf *out, struct error *err)
{
    int fd AUTO_FD = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "cannot open %s", path);
    for (;;) {
        char chunk[16384];
        ssize_t got = fd_read(fd, chunk, sizeof(chunk));
        if (got < 0)
            return error_errno(err, errno, "cannot read %s", path);
        if (got == 0)
            return 0;
        if (buf_append(out, chunk, (size_t)got) < 0)
            return error_set(err, "%s is larger than %zu bytes", path, out->limit);
    }
}
