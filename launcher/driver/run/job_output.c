/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/job_output.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/end/teardown.h"
#include "driver/end/verdict.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/run/collect.h"
#include "driver/run/hangup.h"
#include "driver/tell/line_log.h"
#include "driver/tell/rank_tails.h"
#include "driver/tell/recent.h"

#define WAIT_MS 2000 /* for a stuck sink at the very end */

static void job_log(void *context, enum log_level level, const char *line)
{
    struct job *job = context;
    char *text AUTO_FREE = mem_printf("hvdrun: %s\n", line);
    output_message(job->output, level, line);
    struct recent_piece piece = {.rank = RECENT_LAUNCHER,
                                 .is_stderr = true,
                                 .wall_ns = clock_wall_ns(),
                                 .text = text,
                                 .length = strlen(text)};
    recent_add(job_part(job, recent), &piece);
    line_log_add(job_part(job, line_log), &piece, false);
}

/* What a progress bar overwrites is not worth its place among the last lines. */
static void keep(void *context, const struct output_piece *shown)
{
    const struct job *job = context;
    struct recent_piece piece = {.rank = shown->rank,
                                 .is_stderr = shown->stream == OUTPUT_STDERR,
                                 .wall_ns = shown->wall_ns,
                                 .text = shown->text,
                                 .length = shown->length};
    if (shown->overwritten) {
        line_log_add_bar(job_part(job, line_log), &piece);
        rank_tails_add_bar(job_part(job, rank_tails), &piece);
        return;
    }
    rank_tails_add(job_part(job, rank_tails), &piece);
    recent_add(job_part(job, recent), &piece);
    line_log_add(job_part(job, line_log), &piece, shown->goes_on);
}

static void output_consumed(void *context, int rank, size_t bytes)
{
    const struct job *job = context;
    collect_consumed(job_part(job, collect), rank, bytes);
}

/* The reader of our output is gone. For stdout that ends the job, as it ends any program. */
static void output_failed(void *context, enum output_stream stream, int errnum, const char *text)
{
    struct job *job = context;
    if (stream != OUTPUT_STDOUT || errnum != EPIPE) {
        log_error(&job->log, "%s", text);
        job->output_failed |= stream == OUTPUT_STDOUT;
    } else if (job->state >= JOB_FLUSHING || !hangup_takes_reader(job)) {
        job->gone = true;
        if (job->state < JOB_FLUSHING)
            exit_outside_interrupted(&job->outside, SIGPIPE, clock_mono_ns());
        teardown_after_failure(job);
    }
    if (job->state >= JOB_FLUSHING)
        verdict_note_output(job);
}

static int open_part(struct job *job, struct error *err)
{
    static const struct output_ops ops = {.consumed = output_consumed, .failed = output_failed};
    const struct settings *s = job->settings;
    size_t size = (size_t)job->plan->size;
    const char **hosts AUTO_FREE = mem_array(size, sizeof(*hosts));
    int *local_ranks AUTO_FREE = mem_array(size, sizeof(*local_ranks));
    for (int rank = 0; rank < job->plan->size; rank++) {
        hosts[rank] = job->plan->nodes[job->plan->ranks[rank].node].name;
        local_ranks[rank] = job->plan->ranks[rank].local_rank;
    }
    static const enum output_color colors[] = {[SET_COLOR_AUTO] = OUTPUT_COLOR_AUTO,
                                               [SET_COLOR_ALWAYS] = OUTPUT_COLOR_ALWAYS,
                                               [SET_COLOR_NEVER] = OUTPUT_COLOR_NEVER};
    struct output_config config = {.ranks = job->plan->size,
                                   .ranks_max = (int)s->max_np,
                                   .hosts = hosts,
                                   .local_ranks = local_ranks,
                                   .label = settings_is_set(s, OPT_label) ? s->label : NULL,
                                   .no_label = s->label == NULL || s->label[0] == '\0',
                                   .timestamp = s->prefix_output_with_timestamp,
                                   .collapse = s->collapse,
                                   .merge_stderr = s->merge_stderr,
                                   .quiet = s->quiet,
                                   .verbose = s->verbose > 0,
                                   .color = colors[s->color],
                                   .ranks_shown = s->ranks,
                                   .files = s->output_filename,
                                   .append = job_is_restarted(job),
                                   .raw_seat = s->pty >= 0 ? (int)s->pty : -1,
                                   .tap = {keep, job}};
    job->output = output_create(job->loop, &config, &ops, job, err);
    if (job->output == NULL)
        return -1;
    job->own[PART_job_output] = job->output;
    enum log_level level = s->verbose > 1 ? LOG_DEBUG : s->verbose > 0 ? LOG_INFO : LOG_NOTICE;
    job->log = (struct log){s->quiet ? LOG_ERROR : level, job_log, job};
    for (size_t i = 0; i < job->request->warnings->count; i++)
        log_warning(&job->log, "%s", job->request->warnings->items[i]);
    return 0;
}

static void close_part(struct job *job)
{
    output_destroy(job->output, WAIT_MS);
}

const struct driver_part job_output_part = {
    .name = "job_output", .open = open_part, .close = close_part};
