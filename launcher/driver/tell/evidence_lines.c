/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/evidence_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/tell/rank_tails.h"
#include "driver/tell/recent.h"
#include "model/exit/tail.h"

#define INDENT "    "
#define ALL_BYTES (3 * RECENT_BYTES) /* of the last output of all, with names of ranks */
#define SECTION_BYTES ((size_t)64 << 10)

/* Each line of a piece after these words. */
static void put_lines(struct buf *out, const struct recent_piece *piece, const char *before)
{
    for (size_t at = 0; at < piece->length;) {
        const char *end = memchr(piece->text + at, '\n', piece->length - at);
        size_t length = end != NULL ? (size_t)(end - piece->text) - at : piece->length - at;
        buf_puts(out, before);
        buf_append(out, piece->text + at, length);
        buf_putc(out, '\n');
        at += length + 1;
    }
}

/* The end of a section, from the beginning of a line on. */
static void put_section(const char *stream, int rank, const char *host, const struct buf *section,
                        size_t room, struct buf *out)
{
    const char *text = buf_text(section);
    size_t from = section->length > room ? section->length - room : 0;
    const char *line = from > 0 ? strchr(text + from - 1, '\n') : text - 1;
    if (section->length == 0 || line == NULL)
        return;
    buf_printf(out, "last lines of %s, rank %d on %s:\n", stream, rank, host);
    buf_puts(out, line + 1);
}

static void put_stderr(const struct job *job, int seat, size_t room, struct buf *out)
{
    struct buf section AUTO_BUF = BUF_INIT(SECTION_BYTES);
    struct tail_walk walk;
    struct tail_line line;
    tail_walk_begin(&walk, &job->ranks.records[seat].tail);
    while (tail_walk_next(&walk, &line)) {
        if (line.elsewhere)
            continue;
        buf_puts(&section, INDENT);
        buf_append(&section, line.text, line.length);
        buf_putc(&section, '\n');
    }
    tail_walk_end(&walk);
    put_section("stderr", job_seat_rank(job, seat), job_seat_host(job, seat), &section, room, out);
}

static void put_stdout_piece(void *context, const struct recent_piece *piece)
{
    if (!piece->is_stderr)
        put_lines(context, piece, INDENT);
}

static void put_stdout(const struct job *job, int seat, size_t room, struct buf *out)
{
    int rank = job_seat_rank(job, seat);
    const struct recent *lines = rank < 0 ? NULL : rank_tails_of(job->rank_tails, rank);
    struct buf section AUTO_BUF = BUF_INIT(SECTION_BYTES);
    if (lines != NULL)
        recent_walk(lines, put_stdout_piece, &section);
    put_section("stdout", rank, job_seat_host(job, seat), &section, room, out);
}

/* Seats that another worker has taken over since have no stdout of their own. */
static bool is_last_of_rank(const struct job *job, int seat)
{
    return job->ranks.records[seat].epoch == job->epoch;
}

static void put_piece(void *context, const struct recent_piece *piece)
{
    char name[32] = "";
    if (piece->rank >= 0)
        snprintf(name, sizeof(name), "[%d]<%s>:", piece->rank,
                 piece->is_stderr ? "stderr" : "stdout");
    put_lines(context, piece, name);
}

void evidence_lines(const struct job *job, struct buf *out)
{
    size_t seats = job->ranks.size > 0 ? (size_t)job->ranks.size : 1;
    size_t room = out->limit > ALL_BYTES ? (out->limit - ALL_BYTES) / (2 * seats) : 0;
    for (int seat = 0; seat < job->ranks.size; seat++)
        put_stderr(job, seat, room, out);
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (is_last_of_rank(job, seat))
            put_stdout(job, seat, room, out);
    }
    buf_puts(out, "last lines of all:\n");
    recent_walk(job->recent, put_piece, out);
}
