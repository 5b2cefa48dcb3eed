/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define JOURNAL "short.jsonl"
#define OLD "short.old.jsonl"
#define READ_MAX ((size_t)64 << 20)
#define CHUNK ((size_t)65536)

static int open_journal(int folder)
{
    int fd;
    do {
        fd = openat(folder, JOURNAL, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Two jobs that do this at once drop a few records more. */
static int open_with_room(int folder)
{
    struct stat info;
    int fd = open_journal(folder);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_size < JOB_JOURNAL_BYTES)
        return fd;
    fd_close(&fd);
    renameat(folder, JOURNAL, folder, OLD);
    return open_journal(folder);
}

/* One write(2): the lines of two jobs do not mix. */
int job_journal_add(int folder, const json_t *record, struct error *err)
{
    char *text AUTO_FREE = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(16));
    char *line AUTO_FREE = text == NULL ? NULL : mem_printf("%s\n", text);
    int fd AUTO_FD = line == NULL ? -1 : open_with_room(folder);
    ssize_t put = fd < 0 ? -1 : fd_write(fd, line, strlen(line));
    if (put == (ssize_t)strlen(text == NULL ? "" : text) + 1)
        return 0;
    return error_errno(err, errno, "cannot write the record of the job");
}

static void read_file(int folder, const char *name, struct buf *out)
{
    int fd AUTO_FD = fd_openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0;) {
        void *room = buf_reserve(out, CHUNK);
        if (room == NULL)
            return;
        got = fd_read(fd, room, CHUNK);
        buf_commit(out, got > 0 ? (size_t)got : 0);
    }
}

static void walk_file(int folder, const char *name, int64_t since_s,
                      void (*each)(void *context, const json_t *record), void *context)
{
    struct buf text AUTO_BUF = BUF_INIT(READ_MAX);
    read_file(folder, name, &text);
    const char *at = buf_text(&text), *end = at + text.length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = newline == NULL ? (size_t)(end - at) : (size_t)(newline - at);
        json_t *record = json_loadb(at, length, 0, NULL);
        bool wanted = json_number_value(json_object_get(record, "ended")) >= (double)since_s;
        if (wanted && json_is_string(json_object_get(record, "job")))
            each(context, record);
        json_decref(record);
        at += length + 1;
    }
}

void job_journal_walk(int folder, int64_t since_s,
                      void (*each)(void *context, const json_t *record), void *context)
{
    walk_file(folder, OLD, since_s, each, context);
    walk_file(folder, JOURNAL, since_s, each, context);
}
