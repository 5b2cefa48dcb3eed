/* SPDX-License-Identifier: Apache-2.0 */
#include "output/mux.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "output/collapse.h"
#include "output/console.h"
#include "output/files.h"
#include "output/label.h"
#include "output/lines.h"
#include "output/surface.h"

/* Unfinished lines of all streams together; beyond that long ones are shown before their time. */
#define HELD_MAX (16 * 1024 * 1024)
#define HELD_LONG 4096

#define LABEL_BYTES_MAX (1024 * 1024)

struct stream {
    struct lines lines;
    char *label; /* cached; NULL until the first line, and always when it contains the time */
    size_t label_length;
    int64_t wall_ns;                /* of the last bytes */
    struct target *file;            /* the raw copy, when this stream has a file of its own */
    struct surface *meeting;        /* else the file in which several streams meet, or NULL */
    struct stream *earlier, *later; /* unfinished lines, by age */
    int64_t listed_since;
    bool listed, file_known, ended;
};

/* A file in which several streams meet. */
struct meeting {
    struct meeting *next;
    struct sink *sink;
    struct target *target;
    struct surface *surface;
};

struct mux {
    struct sink *sink;
    struct console *console;
    int ranks, raw_rank;
    char **hosts;
    int *local_ranks;
    bool *shown;
    struct stream *streams; /* 2 per rank */
    struct label *label;    /* NULL: none */
    bool timestamp, timed, merge;
    struct files *files;
    struct meeting *meetings;
    struct collapse *collapse;
    struct stream *oldest, *youngest;
    size_t held;
    struct buf scratch;
    int64_t now_ms;
    /* what the callbacks of lines.h work on */
    int rank, stream;
    const char *text; /* label */
    size_t text_length;
};

static const char *const stream_names[] = {"stdout", "stderr"};

bool mux_labelled(const struct output_config *config)
{
    return !config->no_label || config->timestamp;
}

static struct stream *stream_of(struct mux *mux, int rank, int stream)
{
    return &mux->streams[rank * 2 + stream];
}

static int console_stream(const struct mux *mux, int stream)
{
    return mux->merge ? OUTPUT_STDOUT : stream;
}

static struct label_facts facts_of(const struct mux *mux, int rank, int stream, int64_t wall_ns)
{
    return (struct label_facts){
        .rank = rank,
        .local_rank = mux->local_ranks[rank],
        .host = mux->hosts != NULL ? mux->hosts[rank] : NULL,
        .stream = stream_names[stream],
        .wall_ns = wall_ns,
    };
}

/* ---- labels ---- */

static void render_label(struct mux *mux, int rank, int stream, int64_t wall_ns)
{
    static const char *const colors[] = {"36", "33", "35", "32", "34",
                                         "96", "93", "95", "92", "94"};
    bool color = mux->console->color[console_stream(mux, stream)];
    struct buf *out = &mux->scratch;
    buf_clear(out);
    if (mux->timestamp)
        label_timestamp(wall_ns, out);
    if (mux->label == NULL) {
        buf_puts(out, mux->timestamp ? " " : "");
        return;
    }
    if (color)
        buf_printf(out, "\033[%sm", colors[(size_t)rank % (sizeof(colors) / sizeof(*colors))]);
    struct label_facts facts = facts_of(mux, rank, stream, wall_ns);
    label_render(mux->label, &facts, out);
    buf_puts(out, color ? "\033[0m" : "");
}

static void select_label(struct mux *mux, int rank, int stream)
{
    struct stream *own = stream_of(mux, rank, stream);
    if (mux->timed || own->label == NULL) {
        render_label(mux, rank, stream, own->wall_ns);
        mux->text = buf_text(&mux->scratch);
        mux->text_length = mux->scratch.length;
        if (mux->timed)
            return;
        own->label = mem_dup(mux->text, mux->text_length + 1);
        own->label_length = mux->text_length;
    }
    mux->text = own->label;
    mux->text_length = own->label_length;
}

static void select_group_label(struct mux *mux, const struct collapse_line *line)
{
    struct buf *out = &mux->scratch;
    buf_clear(out);
    if (mux->timestamp)
        label_timestamp(stream_of(mux, line->first_rank, line->stream)->wall_ns, out);
    if (mux->label != NULL) {
        buf_putc(out, '[');
        collapse_ranks(line->ranks, mux->ranks, out);
        buf_putc(out, ']');
    }
    if (out->length > 0)
        buf_puts(out, mux->label != NULL ? ": " : " ");
    mux->text = buf_text(out);
    mux->text_length = out->length;
}

/* ---- lines to the console and to files that several streams share ---- */

static void show(struct mux *mux, int rank, int stream, const struct lines_piece *piece)
{
    int place = console_stream(mux, stream);
    surface_piece(mux->console->surface[place], place, rank * 2 + stream, mux->text,
                  mux->text_length, piece);
}

static void on_group(void *context, const struct collapse_line *line)
{
    struct mux *mux = context;
    if (line->count == 1)
        select_label(mux, line->first_rank, line->stream);
    else
        select_group_label(mux, line);
    struct lines_piece piece = {line->text, line->length, LINES_NEWLINE, false};
    show(mux, line->first_rank, line->stream, &piece);
}

static void on_piece(void *context, const struct lines_piece *piece)
{
    struct mux *mux = context;
    struct stream *own = stream_of(mux, mux->rank, mux->stream);
    if (own->meeting != NULL)
        surface_piece(own->meeting, 0, mux->rank * 2 + mux->stream, "", 0, piece);
    if (!mux->shown[mux->rank])
        return;
    if (mux->collapse != NULL) {
        if (piece->end == LINES_NEWLINE && !piece->continued) {
            collapse_add(mux->collapse, mux->rank, mux->stream, piece->text, piece->length,
                         mux->now_ms);
            return;
        }
        collapse_flush_rank(mux->collapse, mux->rank);
        select_label(mux, mux->rank, mux->stream);
    }
    show(mux, mux->rank, mux->stream, piece);
}

/* ---- files ---- */

static void append_to_meeting(void *context, int stream, const void *bytes, size_t length)
{
    (void)stream;
    struct meeting *meeting = context;
    sink_append(meeting->sink, meeting->target, bytes, length);
}

static struct meeting *find_meeting(struct mux *mux, const char *path)
{
    struct meeting *meeting = mux->meetings;
    for (; meeting != NULL; meeting = meeting->next)
        if (strcmp(sink_target_name(meeting->target), path) == 0)
            return meeting;
    meeting = mem_alloc(sizeof(*meeting));
    meeting->sink = mux->sink;
    meeting->target = sink_file(mux->sink, path, false);
    sink_open(mux->sink, meeting->target);
    struct surface_config config = {.bytes = true, .append = append_to_meeting, .context = meeting};
    meeting->surface = surface_create(&config);
    meeting->next = mux->meetings;
    mux->meetings = meeting;
    return meeting;
}

static void find_file(struct mux *mux, int rank, int stream)
{
    struct stream *own = stream_of(mux, rank, stream);
    if (own->file_known || mux->files == NULL)
        return;
    own->file_known = true;
    struct label_facts facts = facts_of(mux, rank, stream, 0);
    buf_clear(&mux->scratch);
    files_path(mux->files, &facts, &mux->scratch);
    const char *path = buf_text(&mux->scratch);
    if (!files_distinct(mux->files)) {
        own->meeting = find_meeting(mux, path)->surface;
        return;
    }
    own->file = sink_file(mux->sink, path, false);
    sink_open(mux->sink, own->file);
}

/* ---- unfinished lines, by age ---- */

static void unlist(struct mux *mux, struct stream *own)
{
    if (!own->listed)
        return;
    if (own->earlier != NULL)
        own->earlier->later = own->later;
    else
        mux->oldest = own->later;
    if (own->later != NULL)
        own->later->earlier = own->earlier;
    else
        mux->youngest = own->earlier;
    own->earlier = own->later = NULL;
    own->listed = false;
}

static void list(struct mux *mux, struct stream *own)
{
    bool waiting = lines_waiting(&own->lines);
    if (own->listed && waiting && own->listed_since == own->lines.since_ms)
        return;
    unlist(mux, own);
    if (!waiting)
        return;
    own->earlier = mux->youngest;
    if (mux->youngest != NULL)
        mux->youngest->later = own;
    else
        mux->oldest = own;
    mux->youngest = own;
    own->listed = true;
    own->listed_since = own->lines.since_ms;
}

static void prepare(struct mux *mux, int rank, int stream)
{
    mux->rank = rank;
    mux->stream = stream;
    select_label(mux, rank, stream);
}

static void show_held(struct mux *mux, struct stream *own)
{
    int index = (int)(own - mux->streams);
    prepare(mux, index / 2, index % 2);
    mux->held -= own->lines.length;
    lines_show(&own->lines, on_piece, mux);
    mux->held += own->lines.length;
    list(mux, own);
}

/* ---- the interface ---- */

static void add_rank(void *context, int64_t rank)
{
    bool *shown = context;
    shown[rank] = true;
}

static int choose_ranks(struct mux *mux, const struct output_config *config, struct error *err)
{
    mux->shown = mem_array((size_t)mux->ranks, sizeof(*mux->shown));
    if (config->ranks_shown == NULL) {
        memset(mux->shown, 1, (size_t)mux->ranks * sizeof(*mux->shown));
        return 0;
    }
    if (parse_ranks(config->ranks_shown, mux->ranks - 1, add_rank, mux->shown, err) != 0)
        return error_wrap(err, "--ranks");
    return 0;
}

static void copy_facts(struct mux *mux, const struct output_config *config)
{
    size_t ranks = (size_t)mux->ranks;
    mux->local_ranks = mem_array(ranks, sizeof(*mux->local_ranks));
    mux->hosts = config->hosts != NULL ? mem_array(ranks, sizeof(*mux->hosts)) : NULL;
    for (size_t i = 0; i < ranks; i++) {
        mux->local_ranks[i] = config->local_ranks != NULL ? config->local_ranks[i] : (int)i;
        if (mux->hosts != NULL)
            mux->hosts[i] = mem_strdup(config->hosts[i]);
    }
}

static void start_collapse(struct mux *mux)
{
    int shown = 0;
    for (int rank = 0; rank < mux->ranks; rank++)
        shown += mux->shown[rank] && rank != mux->raw_rank;
    int talking[2] = {shown, shown};
    mux->collapse = collapse_create(mux->ranks, talking, on_group, mux);
}

static int configure(struct mux *mux, const struct output_config *config, struct error *err)
{
    if (choose_ranks(mux, config, err) != 0)
        return -1;
    if (!config->no_label) {
        const char *template = config->label != NULL ? config->label : LABEL_DEFAULT;
        mux->label = label_compile(template, err);
        if (mux->label == NULL)
            return error_wrap(err, "--label");
    }
    mux->timestamp = config->timestamp;
    mux->timed =
        config->timestamp || (mux->label != NULL && (label_keys(mux->label) & LABEL_TIME) != 0);
    mux->merge = config->merge_stderr;
    if (config->files != NULL) {
        mux->files = files_create(config->files, mux->ranks, mux->merge, err);
        if (mux->files == NULL)
            return -1;
    }
    copy_facts(mux, config);
    if (config->collapse)
        start_collapse(mux);
    return 0;
}

struct mux *mux_create(struct sink *sink, const struct output_config *config, struct error *err)
{
    struct mux *mux = mem_alloc(sizeof(*mux));
    mux->sink = sink;
    mux->ranks = config->ranks;
    mux->raw_rank = config->raw_rank;
    buf_init(&mux->scratch, LABEL_BYTES_MAX);
    mux->streams = mem_array((size_t)mux->ranks * 2, sizeof(*mux->streams));
    if (configure(mux, config, err) != 0) {
        if (err != NULL)
            err->status = STATUS_USAGE;
        mux_destroy(mux);
        return NULL;
    }
    /* Without labels many lines can go as one, unless each line needs something else. */
    bool runs = !mux_labelled(config) && !config->collapse && config->raw_rank < 0;
    for (int i = 0; i < mux->ranks * 2; i++)
        mux->streams[i].lines.runs = runs;
    return mux;
}

void mux_attach(struct mux *mux, struct console *console)
{
    mux->console = console;
}

void mux_destroy(struct mux *mux)
{
    if (mux == NULL)
        return;
    for (int i = 0; i < mux->ranks * 2; i++) {
        lines_clear(&mux->streams[i].lines);
        free(mux->streams[i].label);
    }
    for (int i = 0; mux->hosts != NULL && i < mux->ranks; i++)
        free(mux->hosts[i]);
    while (mux->meetings != NULL) {
        struct meeting *meeting = mux->meetings;
        mux->meetings = meeting->next;
        surface_destroy(meeting->surface);
        free(meeting);
    }
    free(mux->hosts);
    free(mux->local_ranks);
    free(mux->shown);
    free(mux->streams);
    label_destroy(mux->label);
    files_destroy(mux->files);
    collapse_destroy(mux->collapse);
    buf_destroy(&mux->scratch);
    free(mux);
}

void mux_bytes(struct mux *mux, int rank, int stream, const char *bytes, size_t length,
               int64_t wall_ns, int64_t now_ms)
{
    struct stream *own = stream_of(mux, rank, stream);
    mux->now_ms = now_ms;
    own->wall_ns = wall_ns;
    find_file(mux, rank, stream);
    if (own->file != NULL)
        sink_append(mux->sink, own->file, bytes, length);
    if (rank == mux->raw_rank) {
        if (own->meeting != NULL)
            surface_raw(own->meeting, 0, rank * 2 + stream, bytes, length);
        if (mux->shown[rank])
            surface_raw(mux->console->surface[OUTPUT_STDOUT], OUTPUT_STDOUT, rank * 2, bytes,
                        length);
        return;
    }
    if (!mux->shown[rank] && own->meeting == NULL)
        return;
    prepare(mux, rank, stream);
    mux->held -= own->lines.length;
    lines_add(&own->lines, bytes, length, now_ms, on_piece, mux);
    mux->held += own->lines.length;
    list(mux, own);
    if (mux->held > HELD_MAX && own->lines.length > HELD_LONG)
        show_held(mux, own);
}

static void end_lines(struct mux *mux, int rank, int stream)
{
    struct stream *own = stream_of(mux, rank, stream);
    prepare(mux, rank, stream);
    mux->held -= own->lines.length;
    lines_finish(&own->lines, on_piece, mux);
    unlist(mux, own);
}

void mux_end(struct mux *mux, int rank, int stream)
{
    struct stream *own = stream_of(mux, rank, stream);
    if (own->ended)
        return;
    own->ended = true;
    find_file(mux, rank, stream);
    if (own->file != NULL)
        sink_close(mux->sink, own->file);
    end_lines(mux, rank, stream);
    free(own->label);
    own->label = NULL;
    if (mux->collapse != NULL && mux->shown[rank] && rank != mux->raw_rank)
        collapse_ended(mux->collapse, rank, stream);
}

int64_t mux_due_ms(const struct mux *mux)
{
    int64_t due = mux->collapse != NULL ? collapse_due_ms(mux->collapse) : -1;
    if (mux->oldest == NULL)
        return due;
    int64_t oldest = mux->oldest->listed_since + LINES_HOLD_MS;
    return due < 0 || oldest < due ? oldest : due;
}

void mux_tick(struct mux *mux, int64_t now_ms)
{
    mux->now_ms = now_ms;
    while (mux->oldest != NULL && mux->oldest->listed_since + LINES_HOLD_MS <= now_ms)
        show_held(mux, mux->oldest);
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
    for (int rank = 0; rank < mux->ranks; rank++)
        for (int stream = 0; stream < 2; stream++)
            if (stream_of(mux, rank, stream)->lines.length > 0)
                end_lines(mux, rank, stream);
    mux_flush(mux);
}
