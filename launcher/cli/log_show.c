/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_show.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/tell/recent.h"

#define TEXT_MAX ((size_t)64 << 20)
#define FLUSH_BYTES ((size_t)65536)

struct log_show {
    int *ranks; /* NULL: all */
    size_t rank_count;
    int64_t since_ms;
    struct buf text; /* for `fd` */
    int fd;
    int errnum;   /* of a failed write; 0 */
    bool goes_on; /* the last line has no end yet; its next part comes without a label */
    int open_rank;
    bool open_stderr;
};

static void add_rank(void *context, int64_t rank)
{
    struct log_show *show = context;
    show->ranks = mem_resize_array(show->ranks, show->rank_count + 1, sizeof(*show->ranks));
    show->ranks[show->rank_count++] = (int)rank;
}

struct log_show *log_show_create(const char *ranks, int64_t since_ms)
{
    struct log_show *show = mem_alloc(sizeof(*show));
    *show = (struct log_show){.since_ms = since_ms, .fd = STDOUT_FILENO};
    buf_init(&show->text, TEXT_MAX);
    if (ranks != NULL)
        parse_ranks(ranks, INT32_MAX, add_rank, show, NULL);
    return show;
}

void log_show_destroy(struct log_show *show)
{
    if (show == NULL)
        return;
    free(show->ranks);
    buf_destroy(&show->text);
    free(show);
}

bool log_show_wants(const struct log_show *show, const struct log_line *line)
{
    if (line->wall_ms < show->since_ms)
        return false;
    for (size_t i = 0; i < show->rank_count; i++) {
        if (show->ranks[i] == line->rank)
            return true;
    }
    return show->ranks == NULL;
}

int log_show_flush(struct log_show *show)
{
    if (show->errnum == 0 && fd_write_all(show->fd, buf_text(&show->text), show->text.length) < 0)
        show->errnum = errno;
    buf_clear(&show->text);
    errno = show->errnum;
    return show->errnum == 0 ? 0 : -1;
}

static void turn_to(struct log_show *show, int fd)
{
    if (show->fd != fd || show->text.length > FLUSH_BYTES)
        log_show_flush(show);
    show->fd = fd;
}

/* Ends a line of another rank that has no end yet. */
static void close_line(struct log_show *show)
{
    if (show->goes_on)
        buf_putc(&show->text, '\n');
    show->goes_on = false;
}

void log_show_line(struct log_show *show, const struct log_line *line)
{
    bool continues =
        show->goes_on && show->open_rank == line->rank && show->open_stderr == line->is_stderr;
    if (!continues)
        close_line(show);
    turn_to(show, line->is_stderr ? STDERR_FILENO : STDOUT_FILENO);
    if (!continues && line->rank != RECENT_LAUNCHER)
        buf_printf(&show->text, "[%d]<%s>:", line->rank, line->is_stderr ? "stderr" : "stdout");
    buf_append(&show->text, line->text, line->length);
    if (!line->goes_on)
        buf_putc(&show->text, '\n');
    show->goes_on = line->goes_on;
    show->open_rank = line->rank;
    show->open_stderr = line->is_stderr;
}
