/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence_lines_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
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

struct line_choice {
    bool is_stderr;
    struct buf *out;
};

static void put_if_wanted(void *context, const struct recent_piece *piece)
{
    const struct line_choice *choice = context;
    if (piece->is_stderr == choice->is_stderr)
        put_lines(choice->out, piece, INDENT);
}

/* What the rank has printed, whichever worker it was. */
static void put_printed(const struct job *job, int seat, bool is_stderr, size_t room,
                        struct buf *out)
{
    int rank = job_seat_rank(job, seat);
    const struct recent *lines = rank < 0 ? NULL : rank_tails_of(job_part(job, rank_tails), rank);
    struct buf section AUTO_BUF = BUF_INIT(SECTION_BYTES);
    struct line_choice choice = {is_stderr, &section};
    if (lines != NULL)
        recent_walk(lines, put_if_wanted, &choice);
    put_section(is_stderr ? "stderr" : "stdout", rank, job_seat_host(job, seat), &section, room,
                out);
}

static void put_piece(void *context, const struct recent_piece *piece)
{
    char name[32] = "";
    if (piece->rank >= 0)
        snprintf(name, sizeof(name), "[%d]<%s>:", piece->rank,
                 piece->is_stderr ? "stderr" : "stdout");
    put_lines(context, piece, name);
}

/* By rank: the seat of its newest worker, -1 for none. A rank can have had several workers. The
 * caller frees it. */
static int *newest_seats(const struct job *job)
{
    int *seats = mem_array((size_t)job->ranks.size + 1, sizeof(*seats));
    for (int rank = 0; rank < job->ranks.size; rank++)
        seats[rank] = -1;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *records = job->ranks.records;
        int rank = job_seat_rank(job, seat);
        if (rank < 0 || rank >= job->ranks.size)
            continue;
        if (seats[rank] < 0 || records[seats[rank]].epoch < records[seat].epoch)
            seats[rank] = seat;
    }
    return seats;
}

/* In a job of many epochs, the next worker may be there already: then what the rank printed tells
 * of both. */
void evidence_lines(const struct job *job, struct buf *out)
{
    size_t count = job->ranks.size > 0 ? (size_t)job->ranks.size : 1;
    size_t room = out->limit > ALL_BYTES ? (out->limit - ALL_BYTES) / (2 * count) : 0;
    int *seats AUTO_FREE = newest_seats(job);
    for (int rank = 0; rank < job->ranks.size; rank++) {
        if (seats[rank] >= 0 && job->kind->many_epochs)
            put_printed(job, seats[rank], true, room, out);
        else if (seats[rank] >= 0)
            put_stderr(job, seats[rank], room, out);
    }
    for (int rank = 0; rank < job->ranks.size; rank++) {
        if (seats[rank] >= 0)
            put_printed(job, seats[rank], false, room, out);
    }
    buf_puts(out, "last lines of all:\n");
    recent_walk(job_part(job, recent), put_piece, out);
}
