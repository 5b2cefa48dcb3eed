/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/line_log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/tell/recent.h"

#define MS_MAX (INT64_MAX / 100)

void log_head_append(const struct log_head *head, struct buf *out)
{
    char stream = head->is_stderr ? 'e' : 'o';
    if (head->goes_on)
        stream = (char)toupper(stream);
    buf_printf(out, "%lld ", (long long)head->wall_ms);
    if (head->rank == RECENT_LAUNCHER)
        buf_putc(out, '-');
    else
        buf_printf(out, "%d", head->rank);
    buf_printf(out, " %c %zu\n", stream, head->length);
}

/* A number at `*at`, which moves behind it. -1: there is none, or it is too large. */
static int64_t take_number(const char **at, const char *end, int64_t most)
{
    int64_t number = 0;
    const char *first = *at;
    while (*at < end && isdigit((unsigned char)**at)) {
        number = number * 10 + (**at - '0');
        if (number > most)
            return -1;
        (*at)++;
    }
    return *at == first ? -1 : number;
}

static bool take(const char **at, const char *end, char wanted)
{
    if (*at == end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

bool log_head_parse(const char *bytes, size_t length, struct log_head *out)
{
    const char *at = bytes, *end = bytes + length;
    int64_t wall_ms = take_number(&at, end, MS_MAX);
    if (wall_ms < 0 || !take(&at, end, ' '))
        return false;
    bool is_launcher = take(&at, end, '-');
    int64_t rank = is_launcher ? RECENT_LAUNCHER : take_number(&at, end, INT32_MAX);
    if ((rank < 0 && !is_launcher) || !take(&at, end, ' ') || at == end)
        return false;
    char stream = *at++;
    if (stream == '\0' || strchr("oOeE", stream) == NULL || !take(&at, end, ' '))
        return false;
    int64_t bytes_after = take_number(&at, end, (int64_t)LOG_PIECE_MAX);
    if (bytes_after < 0 || at != end)
        return false;
    *out = (struct log_head){.wall_ms = wall_ms,
                             .rank = (int)rank,
                             .is_stderr = tolower(stream) == 'e',
                             .goes_on = isupper((unsigned char)stream) != 0,
                             .length = (size_t)bytes_after};
    return true;
}

#define HEAD_MAX 80

struct line_log {
    struct output *output;
    struct output_file *file, *previous; /* the last two; NULL: there is no previous one */
    char *path;
    int64_t number; /* of the present file */
    int64_t most, written;
    int64_t window, burst;    /* the number of the present window, and the bytes in it */
    int64_t dropped;          /* bytes that were not logged since the last piece */
    struct recent *kept;      /* the last ones of these; NULL: there are none */
    struct loop_timer *quiet; /* after the window in which they came */
    int64_t *bars;            /* by rank: when its progress bar was last logged */
    int bar_count;
};

static void open_file(struct line_log *log)
{
    char *name AUTO_FREE = mem_printf("%s.%lld.log", log->path, (long long)log->number);
    log->file = output_file_open(log->output, name, false);
    log->written = 0;
}

static void write_dropped(void *context);

struct line_log *line_log_create(struct loop *loop, struct output *output, const char *path,
                                 int64_t bytes)
{
    struct line_log *log =
        MEM_NEW((struct line_log){.output = output, .path = mem_strdup(path), .most = bytes / 2});
    log->quiet = loop_timer_create(loop, write_dropped, log);
    open_file(log);
    return log;
}

void line_log_destroy(struct line_log *log)
{
    if (log == NULL)
        return;
    write_dropped(log);
    loop_timer_destroy(log->quiet);
    output_file_close(log->previous);
    output_file_close(log->file);
    free(log->bars);
    free(log->path);
    free(log);
}

/* The oldest file may not be written yet, so the thread that writes it removes it. */
static void next_file(struct line_log *log)
{
    output_file_remove(log->previous);
    log->previous = log->file;
    log->number++;
    open_file(log);
}

/* The head must not be parted from its text by the end of a file. */
static void write_piece(struct line_log *log, const struct recent_piece *piece, bool goes_on)
{
    struct buf head AUTO_BUF = BUF_INIT(HEAD_MAX);
    struct log_head facts = {.wall_ms = piece->wall_ns / 1000000,
                             .rank = piece->rank,
                             .is_stderr = piece->is_stderr,
                             .goes_on = goes_on,
                             .length = piece->length};
    log_head_append(&facts, &head);
    int64_t bytes = (int64_t)(head.length + piece->length);
    if (log->written > 0 && log->written + bytes > log->most)
        next_file(log);
    output_file_write(log->file, buf_text(&head), head.length);
    output_file_write(log->file, piece->text, piece->length);
    log->written += bytes;
    log->burst += bytes;
}

static void tell_missing(struct line_log *log, int64_t bytes, int64_t wall_ns)
{
    char *text AUTO_FREE =
        mem_printf("hvdrun: %lld bytes of output are not in this log, because they came too fast\n",
                   (long long)bytes);
    struct recent_piece piece = {.rank = RECENT_LAUNCHER,
                                 .is_stderr = true,
                                 .wall_ns = wall_ns,
                                 .text = text,
                                 .length = strlen(text)};
    write_piece(log, &piece, false);
}

struct kept {
    struct line_log *log;
    int64_t bytes, first_ns;
};

static void count_kept(void *context, const struct recent_piece *piece)
{
    struct kept *kept = context;
    kept->first_ns = kept->bytes == 0 ? piece->wall_ns : kept->first_ns;
    kept->bytes += (int64_t)piece->length;
}

static void write_kept(void *context, const struct recent_piece *piece)
{
    write_piece(context, piece, false);
}

/* What came too fast: how much of it is lost, and then its end. */
static void write_dropped(void *context)
{
    struct line_log *log = context;
    struct recent *recent = log->kept;
    struct kept kept = {.log = log};
    if (recent == NULL)
        return;
    log->kept = NULL;
    loop_timer_clear(log->quiet);
    recent_walk(recent, count_kept, &kept);
    if (log->dropped > kept.bytes)
        tell_missing(log, log->dropped - kept.bytes, kept.first_ns);
    recent_walk(recent, write_kept, log);
    log->dropped = 0;
    recent_destroy(recent);
}

static void drop(struct line_log *log, const struct recent_piece *piece)
{
    if (log->kept == NULL) {
        log->kept = recent_create(RECENT_BYTES);
        loop_timer_set(log->quiet, LINE_LOG_WINDOW_MS);
    }
    log->dropped += (int64_t)piece->length;
    recent_add(log->kept, piece);
}

void line_log_add(struct line_log *log, const struct recent_piece *piece, bool goes_on)
{
    if (log == NULL || piece->length > LOG_PIECE_MAX)
        return;
    int64_t window = piece->wall_ns / 1000000 / LINE_LOG_WINDOW_MS;
    if (window != log->window)
        log->burst = 0;
    log->window = window;
    if (log->burst > LINE_LOG_BURST && piece->rank != RECENT_LAUNCHER) {
        drop(log, piece);
        return;
    }
    write_dropped(log);
    write_piece(log, piece, goes_on);
}

static int64_t *bar_of(struct line_log *log, int rank)
{
    if (rank >= log->bar_count) {
        log->bars = mem_resize_array(log->bars, (size_t)rank + 1, sizeof(*log->bars));
        for (int i = log->bar_count; i <= rank; i++)
            log->bars[i] = 0;
        log->bar_count = rank + 1;
    }
    return &log->bars[rank];
}

/* A clock that was set back counts as progress. */
void line_log_add_bar(struct line_log *log, const struct recent_piece *piece)
{
    size_t length = piece->length;
    if (log == NULL || piece->rank < 0)
        return;
    int64_t *last_ns = bar_of(log, piece->rank), age_ns = piece->wall_ns - *last_ns;
    while (length > 0 && piece->text[length - 1] == '\r')
        length--;
    if (length == 0 || (age_ns >= 0 && age_ns < LINE_LOG_BAR_NS))
        return;
    *last_ns = piece->wall_ns;
    struct recent_piece bar = *piece;
    bar.length = length;
    line_log_add(log, &bar, false);
}
