/* SPDX-License-Identifier: Apache-2.0 */
#include "features/debug/debug_holds_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "features/debug/mpir_driver.h"

#define LINES 8 /* one for each rank; then one for all others */
#define RELEASE_MS 10000

struct hold {
    pid_t pid; /* the last worker of the seat that was told of; 0: none */
    bool waits;
};

struct debug_holds {
    bool all;
    bool for_tool;   /* that holds this process, and attaches to the ranks when all of them wait */
    uint32_t *ranks; /* as --stop-at-start names them; seats are ranks in such a job */
    size_t count;
    struct hold *holds; /* by seat */
    int size, told;
};

static void add_rank(void *context, int64_t rank)
{
    struct debug_holds *holds = context;
    holds->ranks = mem_resize_array(holds->ranks, holds->count + 1, sizeof(*holds->ranks));
    holds->ranks[holds->count++] = (uint32_t)rank;
}

static int open_part(struct job *job, struct error *err)
{
    const char *text = job->settings->stop_at_start;
    bool named = text != NULL && text[0] != '\0';
    bool for_tool = mpir_is_debugged() && !job->kind->many_epochs;
    if (!job->kind->has_workers || (!named && !for_tool))
        return 0;
    struct debug_holds *holds = mem_alloc(sizeof(*holds));
    *holds =
        (struct debug_holds){.all = for_tool || strcmp(text, "all") == 0, .for_tool = for_tool};
    job->own[PART_debug_holds] = holds;
    return holds->all ? 0 : parse_ranks(text, INT32_MAX, add_rank, holds, err);
}

static void close_part(struct job *job)
{
    struct debug_holds *holds = job_part(job, debug_holds);
    free(holds->ranks);
    free(holds->holds);
    free(holds);
}

static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    const struct debug_holds *holds = job_part(job, debug_holds);
    if (holds == NULL)
        return;
    message->stop_all = holds->all;
    message->stopped_seats = holds->ranks;
    message->n_stopped_seats = holds->count;
}

static bool is_wanted(const struct debug_holds *holds, int rank)
{
    size_t i = 0;
    while (i < holds->count && holds->ranks[i] != (uint32_t)rank)
        i++;
    return holds->all || i < holds->count;
}

static void tell(const struct job *job, const struct debug_holds *holds, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    int wanted = holds->all ? job->plan->size : (int)holds->count;
    if (holds->told <= LINES)
        log_notice(&job->log, "rank %d waits at its start on %s, pid %ld: hvdrun debug --rank %d",
                   record->rank, job_seat_host(job, seat), (long)record->pid, record->rank);
    else if (holds->told == wanted)
        log_notice(&job->log,
                   "%d more ranks wait at their start: hvdrun debug --rank N is for one of them, "
                   "hvdrun debug --continue for all",
                   wanted - LINES);
}

/* Workers have started. After a restart all of them are others. */
static void ranks_changed(struct job *job)
{
    struct debug_holds *holds = job_part(job, debug_holds);
    if (holds == NULL)
        return;
    for (size_t i = 0; holds->size == 0 && i < holds->count; i++) {
        if (holds->ranks[i] >= (uint32_t)job->plan->size)
            log_warning(&job->log, "--stop-at-start: the job has no rank %u", holds->ranks[i]);
    }
    if (holds->size < job->ranks.size) {
        size_t count = (size_t)job->ranks.size, before = (size_t)holds->size;
        holds->holds = mem_resize_array(holds->holds, count, sizeof(*holds->holds));
        memset(holds->holds + before, 0, (count - before) * sizeof(*holds->holds));
        holds->size = job->ranks.size;
    }
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        struct hold *hold = &holds->holds[seat];
        hold->waits = hold->waits && record->state == RANK_RUNNING;
        if (record->state != RANK_RUNNING || record->pid == hold->pid ||
            !is_wanted(holds, record->rank))
            continue;
        *hold = (struct hold){record->pid, true};
        holds->told++;
        if (!holds->for_tool)
            tell(job, holds, seat);
    }
    if (holds->for_tool && holds->told == job->plan->size) {
        holds->told = 0; /* until they start anew */
        mpir_spawned(job);
        debug_holds_release(job, -1, NULL);
    }
}

bool debug_holds_any(const struct job *job)
{
    const struct debug_holds *holds = job_part(job, debug_holds);
    for (int seat = 0; holds != NULL && seat < holds->size; seat++) {
        if (holds->holds[seat].waits)
            return true;
    }
    return false;
}

void debug_holds_forget(struct job *job, int seat)
{
    const struct debug_holds *holds = job_part(job, debug_holds);
    if (holds != NULL && seat < holds->size)
        holds->holds[seat].waits = false;
}

int debug_holds_release(struct job *job, int seat, struct error *err)
{
    static const struct question question = {&topic_session, NULL, .keep = false};
    const struct debug_holds *holds = job_part(job, debug_holds);
    Hvdrun__SessionRequest request = HVDRUN__SESSION_REQUEST__INIT;
    uint32_t number = (uint32_t)seat;
    if (!debug_holds_any(job) || (seat >= 0 && !holds->holds[seat].waits))
        return error_set(err, seat >= 0 ? "the rank does not wait at its start"
                                        : "no rank waits at its start");
    request.action = HVDRUN__SESSION_ACTION__SESSION_RELEASE;
    request.seats = &number;
    request.n_seats = seat >= 0 ? 1 : 0;
    ask_all(job, &question, &request.base, RELEASE_MS, NULL, NULL);
    for (int i = 0; i < holds->size; i++) {
        if (seat < 0 || i == seat)
            holds->holds[i].waits = false;
    }
    return 0;
}

const struct driver_part debug_holds_part = {.name = "debug_holds",
                                             .open = open_part,
                                             .close = close_part,
                                             .prepare = prepare,
                                             .ranks_changed = ranks_changed};
