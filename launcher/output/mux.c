/* SPDX-License-Identifier: Apache-2.0 */
#include "output/mux.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/status.h"
#include "output/collapse.h"
#include "output/copies.h"
#include "output/label.h"
#include "output/lines.h"
#include "output/seats.h"
#include "output/surface.h"
#include "output/terminal.h"
#include "output/types.h"

/*
 * The labels of lines on the console: that of one stream, which is cached if it does not have the
 * time, and that of several ranks that have written the same line. Pure.
 */

struct labels {
    struct label *label; /* NULL: none */
    bool timestamp;
    bool timed; /* a label has the time, so it is never the same */
    struct buf scratch;
    const char *text; /* the one that was selected, until the next one is */
    size_t length;
};

#define LABEL_BYTES_MAX (1024 * 1024)

/* -1: the template is wrong. */
static int labels_init(struct labels *labels, const struct output_config *config, struct error *err)
{
    buf_init(&labels->scratch, LABEL_BYTES_MAX);
    if (!config->no_label) {
        const char *template = config->label != NULL ? config->label : LABEL_DEFAULT;
        labels->label = label_compile(template, err);
        if (labels->label == NULL)
            return error_wrap(err, "--label");
    }
    labels->timestamp = config->timestamp;
    labels->timed = config->timestamp ||
                    (labels->label != NULL && (label_keys(labels->label) & LABEL_TIME) != 0);
    return 0;
}

static void labels_clear(struct labels *labels)
{
    label_destroy(labels->label);
    buf_destroy(&labels->scratch);
}

static struct label_facts seat_facts(const struct seat_stream *stream)
{
    static const char *const names[] = {"stdout", "stderr"};
    return (struct label_facts){
        .rank = stream->seat->rank,
        .local_rank = stream->seat->local_rank,
        .world = stream->seat->world,
        .world_rank = stream->seat->world_rank,
        .host = stream->seat->host,
        .stream = names[stream->index],
        .wall_ns = stream->wall_ns,
    };
}

static void render(struct labels *labels, const struct seat_stream *own, bool color)
{
    static const char *const colors[] = {"36", "33", "35", "32", "34",
                                         "96", "93", "95", "92", "94"};
    struct label_facts facts = seat_facts(own);
    struct buf *out = &labels->scratch;
    buf_clear(out);
    if (labels->timestamp)
        label_timestamp(facts.wall_ns, out);
    if (labels->label == NULL) {
        buf_puts(out, labels->timestamp ? " " : "");
        return;
    }
    if (color)
        buf_printf(out, "\033[%sm",
                   colors[(size_t)facts.rank % (sizeof(colors) / sizeof(*colors))]);
    label_render(labels->label, &facts, out);
    buf_puts(out, color ? "\033[0m" : "");
}

static void labels_select(struct labels *labels, struct seat_stream *own, bool color)
{
    if (labels->timed || own->label == NULL) {
        render(labels, own, color);
        labels->text = buf_text(&labels->scratch);
        labels->length = labels->scratch.length;
        if (labels->timed)
            return;
        own->label = mem_dup(labels->text, labels->length + 1);
        own->label_length = labels->length;
    }
    labels->text = own->label;
    labels->length = own->label_length;
}

/* Seats to ranks: the same bits in a static job, and most of the time in others. */
static void append_group_ranks(const struct seats *seats, const uint64_t *said, struct buf *out)
{
    int ranks = 0;
    for (int i = 0; i < seats->count; i++)
        if (seats->all[i]->rank >= ranks)
            ranks = seats->all[i]->rank + 1;
    uint64_t *set AUTO_FREE = mem_array(((size_t)ranks + 63) / 64, sizeof(*set));
    for (int i = 0; i < seats->count; i++) {
        int rank = seats->all[i]->rank;
        if ((said[i / 64] >> (i % 64) & 1) != 0)
            set[rank / 64] |= (uint64_t)1 << (rank % 64);
    }
    collapse_ranks(set, ranks, out);
}

static void labels_select_group(struct labels *labels, const struct seats *seats,
                                const struct collapse_line *line)
{
    struct buf *out = &labels->scratch;
    buf_clear(out);
    if (labels->timestamp)
        label_timestamp(seats->all[line->first_rank]->streams[line->stream].wall_ns, out);
    if (labels->label != NULL) {
        buf_putc(out, '[');
        append_group_ranks(seats, line->ranks, out);
        buf_putc(out, ']');
    }
    if (out->length > 0)
        buf_puts(out, labels->label != NULL ? ": " : " ");
    labels->text = buf_text(out);
    labels->length = out->length;
}

/* Unfinished lines of all streams together; beyond that long ones are shown before their time. */
#define HELD_MAX (16 * 1024 * 1024)
#define HELD_LONG 4096

struct mux {
    struct sink *sink;
    struct console *console;
    struct seats seats;
    int raw_seat;
    struct labels labels;
    bool merge;
    struct copies *copies; /* NULL: none */
    struct collapse *collapse;
    struct output_tap tap;
    size_t held;
    int64_t now_ms;
    struct seat_stream *own; /* what the callbacks of lines.h work on */
};

static struct seat_stream *stream_of(struct mux *mux, int seat, int stream)
{
    return &mux->seats.all[seat]->streams[stream];
}

static int console_stream(const struct mux *mux, int stream)
{
    return mux->merge ? OUTPUT_STDOUT : stream;
}

/* The number by which a surface knows a writer. */
static int owner_of(const struct seat_stream *own)
{
    return own->seat->number * 2 + own->index;
}

static bool is_raw(const struct mux *mux, const struct seat *seat)
{
    return seat->number == mux->raw_seat;
}

/* ---- lines to the console ---- */

static void select_label(struct mux *mux, struct seat_stream *own)
{
    labels_select(&mux->labels, own, mux->console->color[console_stream(mux, own->index)]);
}

static void show(struct mux *mux, const struct seat_stream *own, const struct lines_piece *piece)
{
    int place = console_stream(mux, own->index);
    surface_piece(mux->console->surface[place], place, owner_of(own), mux->labels.text,
                  mux->labels.length, piece);
}

static void on_group(void *context, const struct collapse_line *line)
{
    struct mux *mux = context;
    struct seat_stream *first = stream_of(mux, line->first_rank, line->stream);
    if (line->count == 1)
        select_label(mux, first);
    else
        labels_select_group(&mux->labels, &mux->seats, line);
    struct lines_piece piece = {line->text, line->length, LINES_NEWLINE, false};
    show(mux, first, &piece);
}

static void tap(const struct mux *mux, const struct lines_piece *piece)
{
    const struct seat_stream *own = mux->own;
    if (mux->tap.piece == NULL || piece->length == 0)
        return;
    struct output_piece copy = {.rank = own->seat->rank,
                                .stream = (enum output_stream)own->index,
                                .wall_ns = own->wall_ns,
                                .text = piece->text,
                                .length = piece->length,
                                .goes_on = piece->end == LINES_PART,
                                .overwritten = piece->end == LINES_RETURN};
    mux->tap.piece(mux->tap.context, &copy);
}

static void on_piece(void *context, const struct lines_piece *piece)
{
    struct mux *mux = context;
    struct seat_stream *own = mux->own;
    tap(mux, piece);
    if (mux->collapse != NULL) {
        int number = own->seat->number;
        if (piece->end == LINES_NEWLINE && !piece->continued) {
            collapse_add(mux->collapse, number, own->index, piece->text, piece->length,
                         mux->now_ms);
            return;
        }
        collapse_flush_rank(mux->collapse, number);
        select_label(mux, own);
    }
    show(mux, own, piece);
}

/* ---- unfinished lines ---- */

static void prepare(struct mux *mux, struct seat_stream *own)
{
    mux->own = own;
    select_label(mux, own);
}

static void show_held(struct mux *mux, struct seat_stream *own)
{
    prepare(mux, own);
    mux->held -= own->lines.length;
    lines_show(&own->lines, on_piece, mux);
    mux->held += own->lines.length;
}

/* ---- begin and end of a stream ---- */

static void expect(struct mux *mux, struct seat_stream *own)
{
    if (mux->collapse == NULL || !own->shown || is_raw(mux, own->seat))
        return;
    own->expected = true;
    collapse_joined(mux->collapse, own->seat->number, own->index);
}

static void expect_no_more(struct mux *mux, struct seat_stream *own)
{
    if (!own->expected)
        return;
    own->expected = false;
    collapse_ended(mux->collapse, own->seat->number, own->index);
}

/* Also a stream that says nothing has its file. */
static void begin(struct mux *mux, struct seat_stream *own)
{
    if (own->begun)
        return;
    own->begun = true;
    struct label_facts facts = seat_facts(own);
    if (mux->copies != NULL)
        copies_begin(mux->copies, &own->copy, &facts);
}

/* The last line of a stream, with or without its newline. */
static void end_lines(struct mux *mux, struct seat_stream *own)
{
    if (mux->copies != NULL)
        copies_finish(mux->copies, &own->copy);
    if (own->lines.length == 0 && !own->lines.continued && !own->lines.returned) {
        lines_clear(&own->lines);
        return;
    }
    prepare(mux, own);
    mux->held -= own->lines.length;
    lines_finish(&own->lines, on_piece, mux);
}

/* ---- public functions ---- */

static void start_collapse(struct mux *mux)
{
    mux->collapse = collapse_create(mux->seats.count, on_group, mux);
    for (int i = 0; i < mux->seats.count * 2; i++)
        expect(mux, stream_of(mux, i / 2, i % 2));
}

static int configure(struct mux *mux, const struct output_config *config, struct error *err)
{
    /* Many lines can go as one, unless each line needs something else than a label. */
    mux->seats.runs = !config->collapse && config->raw_seat < 0;
    if (seats_init(&mux->seats, config, err) != 0)
        return -1;
    if (labels_init(&mux->labels, config, err) < 0)
        return -1;
    mux->merge = config->merge_stderr;
    if (config->files != NULL) {
        struct files *files =
            files_create(config->files, seats_most_ranks(config), mux->merge, err);
        if (files == NULL)
            return -1;
        mux->copies = copies_create(mux->sink, files, config->append);
    }
    if (config->collapse)
        start_collapse(mux);
    return 0;
}

struct mux *mux_create(struct sink *sink, struct console *console,
                       const struct output_config *config, struct error *err)
{
    struct mux *mux = mem_alloc(sizeof(*mux));
    mux->sink = sink;
    mux->console = console;
    mux->raw_seat = config->raw_seat;
    mux->tap = config->tap;
    if (configure(mux, config, err) != 0) {
        if (err != NULL)
            err->status = STATUS_USAGE;
        mux_destroy(mux);
        return NULL;
    }
    return mux;
}

void mux_destroy(struct mux *mux)
{
    if (mux == NULL)
        return;
    seats_destroy(&mux->seats);
    labels_clear(&mux->labels);
    copies_destroy(mux->copies);
    collapse_destroy(mux->collapse);
    free(mux);
}

/* No text of the worker before may appear under the new label, or be continued by the new worker.
 */
static void vacate(struct mux *mux, struct seat *seat)
{
    for (int i = 0; i < 2; i++) {
        struct seat_stream *own = &seat->streams[i];
        if (own->begun)
            mux_end(mux, seat->number, i);
        expect_no_more(mux, own);
    }
    if (mux->collapse != NULL)
        collapse_flush_rank(mux->collapse, seat->number);
    for (int i = 0; i < 2; i++)
        for (int place = 0; place < 2; place++)
            surface_leave(mux->console->surface[place], owner_of(&seat->streams[i]));
}

void mux_seat(struct mux *mux, int number, const struct output_seat *who)
{
    if (mux->collapse != NULL)
        collapse_grow(mux->collapse, number + 1); /* first: what it emits is of the old seats */
    struct seat *seat = seats_reach(&mux->seats, number);
    if (mux->copies != NULL)
        copies_share(mux->copies);
    vacate(mux, seat);
    seat_take(&mux->seats, seat, who);
    expect(mux, &seat->streams[OUTPUT_STDOUT]);
    expect(mux, &seat->streams[OUTPUT_STDERR]);
}

void mux_bytes(struct mux *mux, int seat, int stream, const char *bytes, size_t length,
               int64_t wall_ns, int64_t now_ms)
{
    struct seat_stream *own = stream_of(mux, seat, stream);
    mux->now_ms = now_ms;
    own->wall_ns = wall_ns;
    begin(mux, own);
    if (own->copy.copy != NULL)
        copies_add(mux->copies, &own->copy, bytes, length);
    if (!own->shown)
        return;
    if (is_raw(mux, own->seat)) {
        surface_raw(mux->console->surface[OUTPUT_STDOUT], OUTPUT_STDOUT,
                    owner_of(&own->seat->streams[OUTPUT_STDOUT]), bytes, length);
        return;
    }
    prepare(mux, own);
    mux->held -= own->lines.length;
    lines_add(&own->lines, bytes, length, on_piece, mux);
    mux->held += own->lines.length;
    if (mux->held > HELD_MAX && own->lines.length > HELD_LONG)
        show_held(mux, own);
}

void mux_end(struct mux *mux, int seat, int stream)
{
    struct seat_stream *own = stream_of(mux, seat, stream);
    if (own->ended)
        return;
    own->ended = true;
    begin(mux, own);
    end_lines(mux, own);
    free(own->label);
    own->label = NULL;
    expect_no_more(mux, own);
}

void mux_show(struct mux *mux, int seat, int stream)
{
    struct seat_stream *own = stream_of(mux, seat, stream);
    if (lines_waiting(&own->lines))
        show_held(mux, own);
}

int64_t mux_due_ms(const struct mux *mux)
{
    return mux->collapse != NULL ? collapse_due_ms(mux->collapse) : -1;
}

void mux_tick(struct mux *mux, int64_t now_ms)
{
    mux->now_ms = now_ms;
    if (mux->collapse != NULL)
        collapse_tick(mux->collapse, now_ms);
}

void mux_flush(struct mux *mux)
{
    if (mux->collapse != NULL)
        collapse_flush(mux->collapse);
}

void mux_finish(struct mux *mux)
{
    for (int i = 0; i < mux->seats.count * 2; i++)
        end_lines(mux, stream_of(mux, i / 2, i % 2));
    mux_flush(mux);
}
