/* SPDX-License-Identifier: Apache-2.0 */
#include "features/debug/debug_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"

#define LINES 8 /* one for each rank; then one for all others */
#define RELEASE_MS 10000

enum hold { HOLD_NONE, HOLD_WANTED, HOLD_WAITS };

struct debug_holds {
    const char *text; /* --stop-at-start; "": only the tool wants that they wait */
    bool for_tool;    /* that holds this process, and is to hear when all ranks have started */
    bool let_go;      /* all of them, also those whose start is told only now */
    bool missing;     /* the text names ranks that the job does not have */
    enum hold *holds; /* by rank, which is the seat; ranks that others spawn do not wait */
    uint32_t *wanted; /* the ranks that are to wait */
    int size, count, told;
};

static int open_part(struct job *job, struct error *err)
{
    const char *text = job->settings->stop_at_start;
    bool for_tool = mpir_is_debugged() && !job->kind->many_epochs;
    (void)err;
    if (text == NULL)
        text = "";
    if (!job->kind->has_workers || (text[0] == '\0' && !for_tool))
        return 0;
    job->own[PART_debug_holds] = MEM_NEW((struct debug_holds){.text = text, .for_tool = for_tool});
    return 0;
}

static void close_part(struct job *job)
{
    struct debug_holds *holds = job_part(job, debug_holds);
    free(holds->wanted);
    free(holds->holds);
    free(holds);
}

static void want(void *context, int64_t rank)
{
    struct debug_holds *holds = context;
    holds->missing = holds->missing || rank >= holds->size;
    if (rank >= holds->size || holds->holds[rank] == HOLD_WANTED)
        return;
    holds->holds[rank] = HOLD_WANTED;
    holds->wanted[holds->count++] = (uint32_t)rank;
}

static void choose(const struct job *job, struct debug_holds *holds)
{
    holds->size = job->plan->size;
    holds->holds = mem_array((size_t)holds->size, sizeof(*holds->holds));
    holds->wanted = mem_array((size_t)holds->size, sizeof(*holds->wanted));
    bool all = holds->text[0] == '\0' || strcmp(holds->text, "all") == 0;
    for (int rank = 0; all && rank < holds->size; rank++)
        want(holds, rank);
    if (!all)
        (void)parse_ranks(holds->text, INT32_MAX, want, holds, NULL); /* debug_check() has, too */
    if (holds->missing)
        log_warning(&job->log, "--stop-at-start=%s: the job has no rank beyond %d", holds->text,
                    holds->size - 1);
}

/* For the ranks that hvdrun starts. */
static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    struct debug_holds *holds = job_part(job, debug_holds);
    if (holds == NULL || job->state >= JOB_RUNNING)
        return;
    if (holds->holds == NULL)
        choose(job, holds);
    message->stop_all = holds->count == holds->size;
    message->stopped_seats = holds->wanted;
    message->n_stopped_seats = message->stop_all ? 0 : (size_t)holds->count;
}

static void tell(const struct job *job, const struct debug_holds *holds, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    if (holds->told <= LINES)
        log_notice(&job->log, "rank %d waits at its start on %s, pid %ld: hvdrun debug --rank %d",
                   record->rank, job_seat_host(job, seat), (long)record->pid, record->rank);
    else if (holds->told == holds->count)
        log_notice(&job->log,
                   "%d more ranks wait at their start: hvdrun debug --rank N is for one of them, "
                   "hvdrun debug --continue for all",
                   holds->count - LINES);
}

/* The context is the hold of one rank, or the part: all ranks of the hosts that were asked.
 * One that has not answered may hold them still. */
static void has_released(void *context, const struct ask *ask)
{
    struct job *job = ask->job;
    struct debug_holds *holds = job_part(job, debug_holds);
    struct buf missing AUTO_BUF = BUF_INIT(4096);
    for (int seat = 0; seat < holds->size; seat++) {
        const struct node_link *node = job->nodes[job->ranks.records[seat].node];
        for (size_t i = 0; (context == holds || context == &holds->holds[seat]) && i < ask->count;
             i++) {
            if (ask->answers[i].node == node && ask->answers[i].state == ASK_ANSWERED)
                debug_holds_forget(job, seat);
        }
    }
    ask_missing(ask, &missing);
    if (missing.length > 0 && job->state == JOB_RUNNING)
        log_warning(&job->log,
                    "%s did not answer, and ranks there may still wait at their start: repeat "
                    "hvdrun debug --continue",
                    buf_text(&missing));
    PARTS_TELL(job, ranks_changed);
}

/* -1: all on this node, or on all nodes (NULL). */
static void release(struct job *job, int seat, const struct node_link *node)
{
    static const struct question question = {&topic_session, NULL, .keep = false};
    struct debug_holds *holds = job_part(job, debug_holds);
    Hvdrun__SessionRequest request = HVDRUN__SESSION_REQUEST__INIT;
    uint32_t number = (uint32_t)seat;
    request.action = HVDRUN__SESSION_ACTION__SESSION_RELEASE;
    request.seats = &number;
    request.n_seats = seat >= 0 ? 1 : 0;
    struct ask *ask = ask_begin(job, &question, RELEASE_MS, has_released,
                                seat >= 0 ? (void *)&holds->holds[seat] : holds);
    for (int i = 0; i < job->node_count; i++) {
        if (node == NULL || node == job->nodes[i])
            ask_node(ask, job->nodes[i], &request.base);
    }
}

/* Workers of one node have started, or one has exited. */
static void ranks_changed(struct job *job)
{
    struct debug_holds *holds = job_part(job, debug_holds);
    const struct node_link *late = NULL;
    for (int seat = 0; holds != NULL && seat < holds->size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        enum hold *hold = &holds->holds[seat];
        if (*hold == HOLD_WAITS && record->state != RANK_RUNNING)
            *hold = HOLD_NONE;
        if (*hold != HOLD_WANTED || record->state != RANK_RUNNING)
            continue;
        *hold = HOLD_WAITS;
        holds->told++;
        if (holds->let_go)
            late = job->nodes[record->node];
        else if (holds->text[0] != '\0')
            tell(job, holds, seat);
    }
    if (late != NULL)
        release(job, -1, late);
    if (holds == NULL || !holds->for_tool || holds->size == 0 ||
        job->ranks.running + job->ranks.exited < job->plan->size)
        return;
    holds->for_tool = false;
    mpir_spawned();
    if (holds->text[0] == '\0')
        debug_holds_release(job, -1, NULL);
}

bool debug_holds_any(const struct job *job)
{
    const struct debug_holds *holds = job_part(job, debug_holds);
    for (int seat = 0; holds != NULL && seat < holds->size; seat++) {
        if (holds->holds[seat] == HOLD_WAITS)
            return true;
    }
    return false;
}

void debug_holds_forget(struct job *job, int seat)
{
    const struct debug_holds *holds = job_part(job, debug_holds);
    if (holds != NULL && seat < holds->size && holds->holds[seat] == HOLD_WAITS)
        holds->holds[seat] = HOLD_NONE;
}

int debug_holds_release(struct job *job, int seat, struct error *err)
{
    struct debug_holds *holds = job_part(job, debug_holds);
    bool is_one = seat >= 0 && holds != NULL && seat < holds->size;
    if (!debug_holds_any(job) || (seat >= 0 && (!is_one || holds->holds[seat] != HOLD_WAITS)))
        return error_set(err, seat >= 0 ? "the rank does not wait at its start"
                                        : "no rank waits at its start");
    holds->let_go = holds->let_go || seat < 0;
    release(job, seat, seat < 0 ? NULL : job->nodes[job->ranks.records[seat].node]);
    return 0;
}

const struct driver_part debug_holds_part = {.name = "debug_holds",
                                             .open = open_part,
                                             .close = close_part,
                                             .prepare = prepare,
                                             .ranks_changed = ranks_changed};
