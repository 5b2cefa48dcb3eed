/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/control/folder.h"
#include "driver/tell/line_log.h"

#define CHUNK ((size_t)65536)

struct log_reader {
    int folder; /* borrowed */
    char *job;
    int fd; /* of the present file; -1: none yet */
    int64_t number;
    struct buf text;
    struct log_head head; /* of the present piece */
    size_t rest;          /* of its text */
    size_t taken;         /* of the text, by the last line */
    bool missed;
};

struct log_reader *log_reader_create(int folder, const char *job)
{
    struct log_reader *reader = MEM_NEW(
        (struct log_reader){.folder = folder, .job = mem_strdup(job), .fd = -1, .number = -1});
    buf_init(&reader->text, 2 * LOG_PIECE_MAX);
    return reader;
}

void log_reader_destroy(struct log_reader *reader)
{
    if (reader == NULL)
        return;
    fd_close(&reader->fd);
    buf_destroy(&reader->text);
    free(reader->job);
    free(reader);
}

/* The lowest number above the present one; -1: there is none. */
static int64_t next_number(const struct log_reader *reader)
{
    int64_t best = -1;
    int fd = fd_openat(reader->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return -1;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int64_t number = -1;
        char *job AUTO_FREE = job_folder_log(entry->d_name, &number);
        bool ours = job != NULL && strcmp(job, reader->job) == 0 && number > reader->number;
        if (ours && (best < 0 || number < best))
            best = number;
    }
    closedir(dir);
    return best;
}

static bool open_next(struct log_reader *reader)
{
    int64_t number = next_number(reader);
    if (number < 0)
        return false;
    char *name AUTO_FREE = mem_printf("%s.%lld.log", reader->job, (long long)number);
    int fd = fd_openat(reader->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    reader->missed |= number != reader->number + 1;
    fd_close(&reader->fd);
    buf_clear(&reader->text);
    reader->fd = fd;
    reader->number = number;
    return true;
}

/* False: the file has nothing more. */
static bool read_more(struct log_reader *reader)
{
    void *room = buf_reserve(&reader->text, CHUNK);
    if (room == NULL) {
        buf_clear(&reader->text);
        return true;
    }
    ssize_t got = fd_read(reader->fd, room, CHUNK);
    buf_commit(&reader->text, got > 0 ? (size_t)got : 0);
    return got > 0;
}

/* The job writes the next file only after the present one is complete, so that one more look at the
 * present file finds its end. */
static bool find_more(struct log_reader *reader)
{
    if (reader->fd < 0)
        return open_next(reader);
    if (read_more(reader))
        return true;
    return next_number(reader) >= 0 && (read_more(reader) || open_next(reader));
}

/* Reads the head of the next piece, when all of the piece has come. What is not a head is skipped
 * up to the end of its line. False: there is none yet. */
static bool take_piece(struct log_reader *reader)
{
    for (;;) {
        const char *text = buf_text(&reader->text);
        const char *end = memchr(text, '\n', reader->text.length);
        size_t length = end == NULL ? 0 : (size_t)(end - text);
        bool is_head = end != NULL && log_head_parse(text, length, &reader->head);
        if (is_head && reader->text.length - length > reader->head.length) {
            buf_consume(&reader->text, length + 1);
            reader->rest = reader->head.length;
            return true;
        }
        if (end != NULL && !is_head)
            buf_consume(&reader->text, length + 1);
        else if (!find_more(reader))
            return false;
    }
}

bool log_reader_next(struct log_reader *reader, struct log_line *out)
{
    buf_consume(&reader->text, reader->taken);
    reader->taken = 0;
    while (reader->rest == 0) {
        if (!take_piece(reader))
            return false;
    }
    const char *text = buf_text(&reader->text);
    const char *end = memchr(text, '\n', reader->rest);
    size_t length = end == NULL ? reader->rest : (size_t)(end - text);
    *out = (struct log_line){.wall_ms = reader->head.wall_ms,
                             .rank = reader->head.rank,
                             .is_stderr = reader->head.is_stderr,
                             .goes_on = end == NULL && reader->head.goes_on,
                             .text = text,
                             .length = length};
    reader->taken = end == NULL ? length : length + 1;
    reader->rest -= reader->taken;
    return true;
}

bool log_reader_is_cut(const struct log_reader *reader)
{
    return reader->rest == 0 && reader->text.length > reader->taken;
}

bool log_reader_missed(const struct log_reader *reader)
{
    return reader->missed;
}
