/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

static int cannot(const char *what, const char *path, int errnum, struct error *err)
{
    error_errno(err, errnum, "cannot %s %s", what, path);
    if (err != NULL)
        err->status = STATUS_USAGE;
    return -1;
}

/* Opens without blocking: open() of a FIFO without a writer would wait. */
static int open_text(const char *path, struct error *err)
{
    struct stat info;
    int fd = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return cannot("open", path, errno, err);
    if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode) && !S_ISBLK(info.st_mode))
        return fd;
    fd_close(&fd);
    return error_status(err, STATUS_USAGE, "%s is a %s; expected a text file", path,
                        S_ISDIR(info.st_mode) ? "folder" : "device");
}

/* Polls before the first read too, because a FIFO without a writer would seem to be at its end. */
static int wait_for_more(int fd, const char *path, int64_t limit_ms, int64_t deadline_ms,
                         struct error *err)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int64_t left = deadline_ms - clock_mono_ms();
        int ready = poll(&one, 1, left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return cannot("read", path, errno, err);
        if (ready == 0 && left <= INT32_MAX)
            return error_status(err, STATUS_USAGE,
                                "%s did not end within %.1f s (--start-timeout); expected a file, "
                                "or a pipe that another process writes and closes",
                                path, (double)limit_ms / 1000);
    }
}

int text_file_read(const char *path, int64_t limit_ms, struct buf *out, struct error *err)
{
    int fd AUTO_FD = open_text(path, err);
    if (fd < 0)
        return -1;
    int64_t deadline_ms = clock_mono_ms() + limit_ms;
    for (;;) {
        char chunk[65536];
        if (wait_for_more(fd, path, limit_ms, deadline_ms, err) < 0)
            return -1;
        ssize_t got = fd_read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EAGAIN)
            continue;
        if (got < 0)
            return cannot("read", path, errno, err);
        if (got == 0)
            return 0;
        if (buf_append(out, chunk, (size_t)got) < 0)
            return error_status(err, STATUS_USAGE, "%s is larger than %zu bytes; expected less",
                                path, out->limit);
        if (memchr(chunk, '\0', (size_t)got) != NULL)
            return 0;
    }
}
