/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

static const char opening[] = "[\n", closing[] = "\n]\n";

static int write_at(int fd, const char *bytes, size_t length, off_t at)
{
    while (length > 0) {
        ssize_t wrote = pwrite(fd, bytes, length, at);
        if (wrote < 0 && errno != EINTR)
            return -1;
        if (wrote <= 0)
            continue;
        bytes += wrote;
        length -= (size_t)wrote;
        at += wrote;
    }
    return 0;
}

int timeline_file_open(struct timeline_file *file, const char *path, struct error *err)
{
    file->fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return error_errno(err, errno, "cannot create the timeline %s", path);
    file->end = (off_t)strlen(opening);
    if (write_at(file->fd, "[\n\n]\n", 5, 0) < 0) {
        error_errno(err, errno, "cannot write the timeline %s", path);
        timeline_file_close(file);
        return -1;
    }
    return 0;
}

int timeline_file_append(struct timeline_file *file, const struct buf *objects, struct error *err)
{
    AUTO_BUF struct buf whole = BUF_INIT(objects->length + sizeof(closing));
    buf_append(&whole, buf_text(objects), objects->length);
    buf_puts(&whole, closing);
    /* one call, so that the file is almost never without the end of the array */
    if (write_at(file->fd, buf_text(&whole), whole.length, file->end) == 0) {
        file->end += (off_t)objects->length;
        return 0;
    }
    int errnum = errno;
    bool mended = write_at(file->fd, closing, strlen(closing), file->end) == 0 &&
                  ftruncate(file->fd, file->end + (off_t)strlen(closing)) == 0;
    return error_errno(err, errnum, "cannot write to the timeline%s",
                       mended ? "" : ", whose end is missing now");
}

void timeline_file_close(struct timeline_file *file)
{
    fd_close(&file->fd);
}
