/* SPDX-License-Identifier: Apache-2.0 */
#include "output/output.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "output/mux.h"
#include "output/sink.h"
#include "output/surface.h"
#include "output/terminal.h"

/* Raw bytes become lines in slices of this size, so that the queue passes its limit by little even
 * when the lines are short and the labels long. */
#define SLICE (64 * 1024)

#define CAUGHT_UP_MS 200 /* after bytes had to wait, until those of all ranks have come */

struct flush {
    struct flush *next;
    uint64_t chunks; /* backlog chunks that must have been done first */
    uint64_t ticket; /* then this place in the sink's queue */
    bool has_ticket;
    void (*done)(void *context);
    void *context;
};

struct output_file {
    struct output_file *next;
    struct output *output;
    struct output_target *target;
};

struct output {
    struct loop *loop;
    struct output_ops ops;
    void *context;
    int seats;
    enum log_level level;
    struct sink *sink;
    struct console *console;
    struct mux *mux;
    uint8_t *fresh; /* by seat, a bit per stream: bytes have come since it was shown */
    size_t fresh_count;
    struct backlog backlog;
    struct loop_timer *submit_timer; /* hands over what this turn of the loop has appended */
    struct loop_timer *due_timer;
    int64_t due_ms;    /* what due_timer is set for */
    int64_t behind_ms; /* when raw bytes last had to wait for a slow reader */
    bool file_failed;  /* a file could not be written, and it was said */
    struct flush *flushes;
    struct output_file *files; /* that other rooms have open */
};

/* ---- from the backlog to the sink ---- */

/* When a line has waited for its equals long enough; -1: none waits. Not while our reader is so
 * slow that ranks are held back: then it is our fault that the others have not said it. */
static int64_t due_ms(const struct output *output)
{
    int64_t due = mux_due_ms(output->mux);
    int64_t caught_up = output->behind_ms + CAUGHT_UP_MS;
    return due < 0 || due > caught_up ? due : caught_up;
}

/* Something has been appended, or begins to wait. */
static void arm(struct output *output)
{
    if (!loop_timer_is_set(output->submit_timer))
        loop_timer_set(output->submit_timer, 0);
    int64_t due = due_ms(output);
    if (due < 0)
        return;
    if (loop_timer_is_set(output->due_timer) && output->due_ms <= due)
        return;
    output->due_ms = due;
    loop_timer_set(output->due_timer, due - loop_now_ms(output->loop));
}

static void hand_over(struct output *output)
{
    surface_settle(output->console->surface[OUTPUT_STDERR]);
    sink_submit(output->sink);
}

static void wake_later(struct output *output)
{
    struct flush *flush = output->flushes;
    uint64_t ticket = flush != NULL && flush->has_ticket ? flush->ticket : 0;
    size_t below = output->backlog.first != NULL ? OUTPUT_QUEUE_MAX / 2 : 0;
    if (ticket != 0 || below != 0)
        sink_wake(output->sink, below, ticket);
}

/* The callback may destroy the output, so it comes last; one flush per call. */
static void check_flushes(struct output *output)
{
    struct flush *flush = output->flushes;
    if (flush == NULL)
        return;
    if (!flush->has_ticket && output->backlog.done >= flush->chunks) {
        mux_flush(output->mux);
        hand_over(output);
        flush->ticket = sink_ticket(output->sink);
        flush->has_ticket = true;
    }
    if (!flush->has_ticket || !sink_reached(output->sink, flush->ticket)) {
        wake_later(output);
        return;
    }
    sink_report_failures(output->sink); /* "written or dropped" includes saying what was dropped */
    output->flushes = flush->next;
    struct flush call = *flush;
    free(flush);
    if (output->flushes != NULL)
        arm(output);
    call.done(call.context);
}

/* Makes lines of the first bytes that wait; returns how many bytes of which seat. */
static size_t take_slice(struct output *output, int *seat)
{
    struct backlog_chunk *chunk = output->backlog.first;
    size_t slice = chunk->length - chunk->taken < SLICE ? chunk->length - chunk->taken : SLICE;
    *seat = chunk->seat;
    switch (chunk->what) {
    case BACKLOG_SEAT: mux_seat(output->mux, chunk->seat, &chunk->who); break;
    case BACKLOG_SHOW: mux_show(output->mux, chunk->seat, chunk->stream); break;
    case BACKLOG_END: mux_end(output->mux, chunk->seat, chunk->stream); break;
    case BACKLOG_BYTES:
        mux_bytes(output->mux, chunk->seat, chunk->stream, chunk->bytes + chunk->taken, slice,
                  chunk->wall_ns, loop_now_ms(output->loop));
        break;
    }
    chunk->taken += slice;
    if (chunk->taken == chunk->length)
        backlog_drop_first(&output->backlog);
    return slice;
}

static void pump(struct output *output)
{
    if (output->backlog.first != NULL)
        output->behind_ms = loop_now_ms(output->loop);
    while (output->backlog.first != NULL && sink_queued(output->sink) < OUTPUT_QUEUE_MAX) {
        int seat;
        size_t taken = take_slice(output, &seat);
        if (taken > 0)
            output->ops.consumed(output->context, seat, taken);
    }
}

static void on_drained(void *context)
{
    struct output *output = context;
    if (output->backlog.first != NULL) {
        pump(output);
        arm(output);
    }
    wake_later(output);
    check_flushes(output);
}

static void on_submit(void *context)
{
    struct output *output = context;
    hand_over(output);
    wake_later(output);
    check_flushes(output);
}

static void on_due(void *context)
{
    struct output *output = context;
    int64_t now = loop_now_ms(output->loop);
    if (output->backlog.first != NULL)
        output->behind_ms = now;
    if (due_ms(output) <= now)
        mux_tick(output->mux, now);
    arm(output);
}

static void on_failed(void *context, struct output_target *target, int errnum)
{
    struct output *output = context;
    for (int i = 0; i < 2; i++) {
        if (output->console->target[i] != target)
            continue;
        AUTO_FREE char *text =
            mem_printf("cannot write to %s: %s; hvdrun drops all further output for it",
                       target->path, strerrordesc_np(errnum));
        output->ops.failed(output->context, (enum output_stream)i, errnum, text);
        return;
    }
    if (output->file_failed)
        return; /* the others have the same cause, mostly */
    output->file_failed = true;
    AUTO_FREE char *text = mem_printf("cannot write '%s': %s; the job goes on, and files that "
                                      "hvdrun cannot write stay incomplete",
                                      target->path, strerrordesc_np(errnum));
    output_message(output, LOG_WARNING, text);
}

/* ---- create and destroy ---- */

struct output *output_create(struct loop *loop, const struct output_config *config,
                             const struct output_ops *ops, void *context, struct error *err)
{
    static const struct sink_ops sink_ops = {.drained = on_drained, .failed = on_failed};
    tzset(); /* localtime_r() need not do it */
    struct output *output = mem_alloc(sizeof(*output));
    output->loop = loop;
    output->ops = *ops;
    output->context = context;
    output->seats = config->ranks;
    output->level = config->quiet ? LOG_ERROR : config->verbose ? LOG_DEBUG : LOG_NOTICE;
    output->sink = sink_create(loop, &sink_ops, output);
    output->console = console_create(output->sink, config);
    output->mux = mux_create(output->sink, output->console, config, err);
    if (output->mux == NULL) {
        console_destroy(output->console);
        sink_destroy(output->sink, 0);
        free(output);
        return NULL;
    }
    output->submit_timer = loop_timer_create(loop, on_submit, output);
    output->due_timer = loop_timer_create(loop, on_due, output);
    return output;
}

static void free_lists(struct output *output)
{
    while (output->flushes != NULL) {
        struct flush *flush = output->flushes;
        output->flushes = flush->next;
        free(flush);
    }
    while (output->files != NULL)
        output_file_close(output->files);
    free(output->fresh);
}

bool output_destroy(struct output *output, int64_t wait_ms)
{
    if (output == NULL)
        return true;
    int seat;
    while (output->backlog.first != NULL)
        take_slice(output, &seat);
    mux_finish(output->mux);
    surface_finish(output->console->surface[OUTPUT_STDOUT]);
    surface_finish(output->console->surface[OUTPUT_STDERR]);
    free_lists(output);
    loop_timer_destroy(output->submit_timer);
    loop_timer_destroy(output->due_timer);
    bool written = sink_destroy(output->sink, wait_ms);
    mux_destroy(output->mux);
    console_destroy(output->console);
    free(output);
    return written;
}

/* ---- output of the ranks ---- */

void output_seat(struct output *output, int seat, const struct output_seat *who)
{
    if (seat < 0 || who->rank < 0)
        return;
    if (seat >= output->seats)
        output->seats = seat + 1;
    if (output->backlog.first != NULL)
        backlog_put_seat(&output->backlog, seat, who);
    else
        mux_seat(output->mux, seat, who);
    arm(output);
}

/* Returns what it was. */
static bool set_fresh(struct output *output, int seat, enum output_stream stream, bool fresh)
{
    output->fresh = mem_reach(output->fresh, &output->fresh_count, (size_t)output->seats,
                              sizeof(*output->fresh));
    uint8_t bit = (uint8_t)(1u << stream), was = output->fresh[seat] & bit;
    output->fresh[seat] = (uint8_t)(fresh ? output->fresh[seat] | bit : output->fresh[seat] & ~bit);
    return was != 0;
}

void output_bytes(struct output *output, int seat, enum output_stream stream, const void *bytes,
                  size_t length, int64_t wall_ns)
{
    if (seat < 0 || seat >= output->seats || length == 0)
        return;
    set_fresh(output, seat, stream, true);
    const char *at = bytes;
    size_t taken = 0;
    int64_t now_ms = loop_now_ms(output->loop);
    while (taken < length && output->backlog.first == NULL &&
           sink_queued(output->sink) < OUTPUT_QUEUE_MAX) {
        size_t slice = length - taken < SLICE ? length - taken : SLICE;
        mux_bytes(output->mux, seat, stream, at + taken, slice, wall_ns, now_ms);
        taken += slice;
    }
    if (taken < length) {
        bool first = output->backlog.first == NULL;
        backlog_put(&output->backlog, seat, stream, at + taken, length - taken, wall_ns);
        if (first)
            wake_later(output);
    }
    arm(output);
    if (taken > 0)
        output->ops.consumed(output->context, seat, taken);
}

/* What takes no credit must not pile up behind a slow reader: once after bytes, however often it is
 * said. */
void output_show(struct output *output, int seat, enum output_stream stream)
{
    if (seat < 0 || seat >= output->seats || !set_fresh(output, seat, stream, false))
        return;
    if (output->backlog.first != NULL)
        backlog_put_word(&output->backlog, BACKLOG_SHOW, seat, stream);
    else
        mux_show(output->mux, seat, stream);
    arm(output);
}

void output_end(struct output *output, int seat, enum output_stream stream)
{
    if (seat < 0 || seat >= output->seats)
        return;
    if (output->backlog.first != NULL)
        backlog_put_word(&output->backlog, BACKLOG_END, seat, stream);
    else
        mux_end(output->mux, seat, stream);
    arm(output);
}

/* ---- the launcher's own messages ---- */

void output_message(struct output *output, enum log_level level, const char *line)
{
    if (level > output->level)
        return;
    if (level > LOG_ERROR && sink_queued(output->sink) > 2 * OUTPUT_QUEUE_MAX)
        return;
    AUTO_FREE char *text = mem_printf("hvdrun: %s\n", line);
    output_block(output, text);
}

static void put_text(struct output *output, enum output_stream stream, const char *text)
{
    surface_text(output->console->surface[stream], stream, text, strlen(text));
    arm(output);
}

void output_block(struct output *output, const char *text)
{
    put_text(output, OUTPUT_STDERR, text);
}

void output_print(struct output *output, const char *text)
{
    put_text(output, OUTPUT_STDOUT, text);
}

void output_progress(struct output *output, const char *text)
{
    surface_progress(output->console->surface[OUTPUT_STDERR], OUTPUT_STDERR, text);
    arm(output);
}

void output_flush(struct output *output, void (*done)(void *context), void *context)
{
    struct flush *flush = mem_alloc(sizeof(*flush));
    flush->chunks = output->backlog.put;
    flush->done = done;
    flush->context = context;
    struct flush **end = &output->flushes;
    while (*end != NULL)
        end = &(*end)->next;
    *end = flush;
    arm(output);
}

/* ---- files of other rooms, written in the order of all output, by its thread ---- */

/* Opens the target. */
static struct output_file *add_file(struct output *output, struct output_target *target)
{
    struct output_file *file =
        MEM_NEW((struct output_file){output->files, output, sink_keep(output->sink, target)});
    sink_open(output->sink, target);
    output->files = file;
    arm(output);
    return file;
}

struct output_file *output_file_open(struct output *output, const char *path, bool append)
{
    return add_file(output, target_file(path, append, false));
}

struct output_file *output_file_open_new(struct output *output, const char *path)
{
    return add_file(output, target_new_file(path));
}

void output_file_put(struct output *output, const char *path, char *text)
{
    struct output_file *file = output_file_open(output, path, false);
    output_file_write(file, text, strlen(text));
    output_file_close(file);
    free(text);
}

struct output_file *
output_file_open_whole(struct output *output, const char *path,
                       void (*failed)(void *context, const char *path, int errnum), void *context)
{
    return add_file(output, target_whole_file(path, failed, context));
}

void output_file_write(struct output_file *file, const void *bytes, size_t length)
{
    sink_append(file->output->sink, file->target, bytes, length);
    arm(file->output);
}

static void end_file(struct output_file *file, enum target_end end)
{
    if (file == NULL)
        return;
    struct output *output = file->output;
    struct output_file **place = &output->files;
    while (*place != file)
        place = &(*place)->next;
    *place = file->next;
    sink_end(output->sink, file->target, end);
    arm(output);
    free(file);
}

void output_file_close(struct output_file *file)
{
    end_file(file, TARGET_CLOSE);
}

void output_file_remove(struct output_file *file)
{
    end_file(file, TARGET_REMOVE);
}
