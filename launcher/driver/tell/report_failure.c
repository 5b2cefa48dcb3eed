/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/line_log.h"
#include "driver/tell/tell.h"
#include "model/exit/symptom.h"

#define ACCOUNT_MAX 2000 /* bytes of the program's error file that are shown */

/* Each line of `text` on a line of its own, marked. */
static void quote(struct buf *out, const char *title, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    buf_printf(out, "hvdrun: %s:\n", title);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        buf_printf(out, "    %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

/* The error file that torch's @record wrote: {"message": {"message": ..., "extraInfo":
 * {"py_callstack": ...}}}, or {"message": "..."}. Other content is shown as it is. */
static char *account_text(const char *file)
{
    json_t *root = json_loads(file, 0, NULL);
    json_t *message = json_object_get(root, "message");
    const char *trace =
        json_string_value(json_object_get(json_object_get(message, "extraInfo"), "py_callstack"));
    const char *text = json_is_string(message)
                           ? json_string_value(message)
                           : json_string_value(json_object_get(message, "message"));
    char *result = NULL;
    if (trace != NULL)
        result = mem_printf("%s\n%.*s", text == NULL ? "" : text, ACCOUNT_MAX, trace);
    else
        result = mem_printf("%.*s", ACCOUNT_MAX, text == NULL ? file : text);
    json_decref(root);
    return result;
}

static void quote_account(struct buf *out, const struct rank_record *record)
{
    if (record->text == NULL || record->exec_failed)
        return;
    char *account AUTO_FREE = account_text(record->text);
    char *title AUTO_FREE =
        mem_printf("error file of rank %d (TORCHELASTIC_ERROR_FILE)", record->rank);
    quote(out, title, account);
}

const char *report_verdict_host(const struct job *job)
{
    return job->verdict.node < 0 ? NULL : job->nodes[job->verdict.node]->host;
}

enum exit_role report_role(const struct job *job, int seat)
{
    if (!job->verdict.likely)
        return kind_role(job, seat);
    if (seat == job->verdict.seat)
        return ROLE_CAUSE;
    return seat == job->verdict.first_seat ? ROLE_CONSEQUENCE : kind_role(job, seat);
}

static bool is_named(const struct job *job, int seat)
{
    return seat == job->verdict.seat || (job->verdict.likely && seat == job->verdict.first_seat);
}

/* The seats of an elastic job also have the workers of earlier epochs. */
static bool was_in_last_epoch(const struct job *job, int seat)
{
    return job_epoch_runs(job, job->ranks.records[seat].joined);
}

/* The ranks that the report does not name, in all and by role. */
struct others {
    int all, failed, ended; /* on their own; as a consequence */
};

static struct others count_others(const struct job *job)
{
    struct others others = {.all = 0};
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (!was_in_last_epoch(job, seat) || is_named(job, seat))
            continue;
        enum exit_role role = kind_role(job, seat);
        others.all++;
        others.failed += role == ROLE_FAILED;
        others.ended += role == ROLE_CONSEQUENCE;
    }
    return others;
}

static void describe_rank(const struct job *job, int seat, struct buf *out)
{
    const struct rank_record *record = &job->ranks.records[seat];
    buf_printf(out, "hvdrun: rank %d", record->rank);
    if (record->world > 0)
        buf_printf(out, " [%d.%d]", record->world, record->world_rank);
    buf_printf(out, ": host %s", job_seat_host(job, seat));
    if (record->pid > 0)
        buf_printf(out, ", pid %d", (int)record->pid);
    bool ended = record->state >= RANK_EXITED && !record->exec_failed;
    if (ended && job->verdict.likely && record->signaled && record->ended_by_us) {
        buf_printf(out, ", terminated by hvdrun after %.2f s",
                   (double)(record->ended_ns - record->started_ns) / 1e9);
    } else if (ended) {
        if (record->signaled) {
            buf_printf(out, ", signal %d (", record->code);
            exit_signal_name(record->code, out);
            buf_printf(out, ")%s", record->core ? ", core dumped" : "");
        } else {
            buf_printf(out, ", exit code %d", record->code);
        }
        buf_printf(out, ", after %.2f s", (double)(record->ended_ns - record->started_ns) / 1e9);
    }
    buf_puts(out, "\n");
    if (rank_end_requester(record) != NULL)
        buf_printf(out, "hvdrun: %s had sent it that signal\n", rank_end_requester(record));
    if (record->oom)
        buf_printf(out,
                   "hvdrun: out of memory: the kernel killed processes on %s while the rank ran\n",
                   job_seat_host(job, seat));
}

/* The first failure, which is a consequence: one line with what it said about its peer. */
static void describe_first(const struct job *job, struct buf *out)
{
    const struct rank_record *record = &job->ranks.records[job->verdict.first_seat];
    struct symptom symptom;
    symptom_read(&record->tail, INT64_MAX, &symptom);
    describe_rank(job, job->verdict.first_seat, out);
    quote(out, "its error, most likely a consequence", symptom.line);
}

/* After the loss of a node: the ranks that failed by themselves because of it. */
static int count_followers(const struct job *job)
{
    int count = 0;
    for (int seat = 0; seat < job->ranks.size && job->verdict.cause == CAUSE_NODE_LOST; seat++)
        count += was_in_last_epoch(job, seat) && !job->ranks.records[seat].ended_by_us &&
                 kind_role(job, seat) == ROLE_CONSEQUENCE;
    return count;
}

static void describe_terminated(const struct job *job, const struct others *others, struct buf *out)
{
    int followers = count_followers(job);
    int count = others->ended - followers;
    if (followers > 0)
        buf_printf(out, "hvdrun: %d rank%s failed because of that\n", followers,
                   followers == 1 ? "" : "s");
    const char *plural = count == 1 ? "" : "s";
    if (count == 0)
        return;
    if (job->verdict.seat < 0)
        buf_printf(out, "hvdrun: terminated %d rank%s\n", count, plural);
    else if (count < others->all)
        buf_printf(out, "hvdrun: terminated %d other rank%s\n", count, plural);
    else if (count == 1)
        buf_puts(out, "hvdrun: terminated the other rank\n");
    else
        buf_printf(out, "hvdrun: terminated the other %d ranks\n", count);
}

void report_failure(const struct job *job, struct buf *out)
{
    if (job->verdict.cause == CAUSE_NONE && (job->verdict.status == 0 || !job->kind->has_workers))
        return; /* a check has printed its findings */
    buf_printf(out, "hvdrun: %s\n", job->verdict.explanation);
    if (job->verdict.seat >= 0) {
        struct rank_record *record = &job->ranks.records[job->verdict.seat];
        describe_rank(job, job->verdict.seat, out);
        bool was_shown = job->settings->pty == record->rank; /* its terminal was the user's */
        if (!record->exec_failed && !was_shown)
            quote(out,
                  job->settings->merge_stderr ? "last lines of its output"
                                              : "last lines of its stderr",
                  tail_text(&record->tail));
        quote_account(out, record);
    }
    if (job->verdict.likely)
        describe_first(job, out);
    if (job->verdict.cause == CAUSE_REQUEUED)
        return;
    struct others others = count_others(job);
    bool other = job->verdict.seat >= 0;
    if (others.failed > 0)
        buf_printf(out, "hvdrun: %d %srank%s failed%s\n", others.failed, other ? "other " : "",
                   others.failed == 1 ? "" : "s",
                   job->verdict.likely  ? " after it"
                   : job->verdict.tie   ? ", too"
                   : others.failed == 1 ? " on its own"
                                        : " on their own");
    describe_terminated(job, &others, out);
    if (job->verdict.status == 0)
        buf_puts(out, "hvdrun: the exit status is still 0, because of --exit-policy\n");
}

/* After the output of the ranks. */
static void tell(struct job *job)
{
    AUTO_BUF struct buf block = BUF_INIT((size_t)1 << 20);
    if (!job->gone)
        report_failure(job, &block);
    if (block.length == 0)
        return;
    output_block(job->output, buf_text(&block));
    struct recent_piece piece = {.rank = RECENT_LAUNCHER,
                                 .is_stderr = true,
                                 .wall_ns = clock_wall_ns(),
                                 .text = buf_text(&block),
                                 .length = block.length};
    line_log_add(job_part(job, line_log), &piece, false);
}

const struct driver_part failure_block_part = {.name = "failure_block", .tell = tell};
