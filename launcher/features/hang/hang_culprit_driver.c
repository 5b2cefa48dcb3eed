/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang_culprit_driver.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/request.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "driver/tell/stalls.h"
#include "features/hang/culprit.h"
#include "features/hang/hang_facts_driver.h"
#include "features/hang/stall_lines.h"
#include "features/stacks/look_driver.h"
#include "model/exit/tail.h"
#include "model/plan/rank_list.h"
#include "stacks/tree.h"

#define STALL_TEXT_MAX 8192

struct asked {
    struct places *places;
    const struct look_ranks *ranks; /* NULL: all */
};

static void take_stack(void *context, int seat, const struct look_stack *stack)
{
    const struct asked *asked = context;
    int rank = stack->stack->rank;
    (void)seat;
    if (asked->ranks == NULL ||
        (rank >= 0 && rank < asked->ranks->count && asked->ranks->wanted[rank]))
        places_add(asked->places, stack->stack);
}

/* The texts are borrowed from the look. */
static struct places *places_of_look(const struct ask *look, const struct look_ranks *ranks)
{
    struct asked asked = {places_create(), ranks};
    look_walk(look, take_stack, &asked);
    places_find(asked.places);
    return asked.places;
}

static void add_place(const struct places *places, struct culprit_rank *rank)
{
    const struct program_place *place = places_of(places, rank->rank);
    if (place != NULL)
        rank->place = *place;
    rank->held = places_held(places, rank->rank, &rank->held_below);
}

/* What PyTorch's watchdog has written. */
static void read_watchdog(const struct tail *tail, struct watchdog_rank *out)
{
    struct tail_walk walk;
    struct tail_line line;
    struct watchdog_state state;
    tail_walk_begin(&walk, tail);
    while (tail_walk_next(&walk, &line)) {
        if (!line.elsewhere && watchdog_read(line.text, line.length, &state))
            watchdog_rank_add(out, &state);
    }
    tail_walk_end(&walk);
}

static int by_rank(const void *a, const void *b)
{
    const struct culprit_rank *first = a, *second = b;
    return first->rank < second->rank ? -1 : first->rank > second->rank;
}

/* `of` has what NCCL says of each rank. */
static void add_launched(const struct ras_rank *of, struct culprit_rank *ranks, int count)
{
    struct ras_finding finding = {.operation = NULL};
    int64_t *launched AUTO_FREE = mem_array((size_t)count + 1, sizeof(*launched));
    bool found = ras_find(of, (size_t)count, &finding, launched);
    for (int i = 0; i < count; i++) {
        ranks[i].launched = found ? launched[i] : -1;
        ranks[i].operation = finding.operation;
    }
}

static void add_enqueued(const struct watchdog_rank *of, struct culprit_rank *ranks, int count)
{
    int64_t *enqueued AUTO_FREE = mem_array((size_t)count + 1, sizeof(*enqueued));
    (void)watchdog_compare(of, (size_t)count, enqueued);
    for (int i = 0; i < count; i++)
        ranks[i].enqueued = enqueued[i];
}

static int collect_ranks(const struct job *job, const struct hang *hang,
                         const struct ras_facts *ras, const struct places *places,
                         struct culprit_rank *ranks)
{
    size_t size = (size_t)job->ranks.size + 1;
    struct ras_rank *of AUTO_FREE = mem_array(size, sizeof(*of));
    struct watchdog_rank *watchdogs AUTO_FREE = mem_array(size, sizeof(*watchdogs));
    int count = 0;
    /* the time of an expectation may pass without a silence */
    bool pair = job->plan->size == 2 && hang_unmet(hang) < 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->state != RANK_RUNNING)
            continue;
        of[count] = ras_facts_of(ras, seat);
        read_watchdog(&record->tail, &watchdogs[count]);
        ranks[count] = (struct culprit_rank){.rank = job_seat_rank(job, seat),
                                             .host = job->nodes[record->node]->host,
                                             .asleep = pair && hang_sleeps(hang, seat),
                                             .way = hang_way(hang, seat),
                                             .last_ns = record->output_ns};
        add_place(places, &ranks[count++]);
    }
    add_launched(of, ranks, count);
    add_enqueued(watchdogs, ranks, count);
    if (count > 1)
        qsort(ranks, (size_t)count, sizeof(*ranks), by_rank);
    return count;
}

/* Fills in what libhvd says, or else Horovod's stall inspector. A warning of it that lists all
 * ranks does not say which of them is late. */
static void find_stall(const struct job *job, const struct hang_facts *facts, int running,
                       struct culprit_stall *out, struct buf *text)
{
    int64_t now_ns = clock_mono_ns();
    const struct stall *stall =
        hang_waits_decide(job_part(job, hang_waits), job_part(job, stall_list), now_ns);
    const struct stall_text *warning = stall_lines_find(facts->stalls, now_ns);
    *out = (struct culprit_stall){.count = 0};
    if (stall != NULL) {
        hang_waits_text(job_part(job, hang_waits), stall, text);
        *out = (struct culprit_stall){buf_text(text), stall->missing.list, stall->missing.count};
    } else if (warning != NULL && warning->count < running) {
        buf_puts(text, "Horovod waits for ");
        rank_ranges(warning->missing, warning->count, text);
        buf_printf(text, " in '%s'", warning->name);
        *out = (struct culprit_stall){buf_text(text), warning->missing, warning->count};
    }
}

/* Those of this epoch that have ended well. */
static int collect_ended(const struct job *job, int *ranks, const char **host)
{
    int count = 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        bool ended = record->state == RANK_EXITED || record->state == RANK_FINISHED;
        if (!ended || record->signaled || record->code != 0 || !job_epoch_runs(job, record->joined))
            continue;
        if (count == 0)
            *host = job->nodes[record->node]->host;
        ranks[count++] = job_seat_rank(job, seat);
    }
    return count;
}

struct culprit hang_culprit(const struct job *job, const struct hang *hang,
                            const struct hang_facts *facts, const struct ask *look, struct buf *out)
{
    size_t size = (size_t)job->ranks.size + 1;
    struct culprit_rank *ranks AUTO_FREE = mem_array(size, sizeof(*ranks));
    int *ended_ranks AUTO_FREE = mem_array(size, sizeof(*ended_ranks));
    struct places *places = places_of_look(look, NULL);
    struct buf text AUTO_BUF = BUF_INIT(STALL_TEXT_MAX);
    struct culprit_stall stall;
    struct culprit_ended ended = {.ranks = ended_ranks};
    ended.count = collect_ended(job, ended_ranks, &ended.host);
    int count = collect_ranks(job, hang, facts->ras, places, ranks);
    find_stall(job, facts, count, &stall, &text);
    struct culprit culprit =
        culprit_find(ranks, count, stall.count > 0 ? &stall : NULL, &ended, out);
    places_destroy(places);
    return culprit;
}

/* Of one look alone: the ranks at another place than most, or that cannot go on. Appends nothing if
 * no rank stands out. `only`: NULL for all. */
static void put_odd_places(const struct ask *look, const struct look_ranks *only, struct buf *out)
{
    struct places *places = places_of_look(look, only);
    size_t count = places_count(places);
    struct culprit_rank *ranks AUTO_FREE = mem_array(count + 1, sizeof(*ranks));
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct culprit_rank){
            .rank = places_rank(places, i), .way = HANG_MOVES, .launched = -1, .enqueued = -1};
        add_place(places, &ranks[i]);
    }
    if (count > 1)
        qsort(ranks, count, sizeof(*ranks), by_rank);
    size_t length = out->length;
    if (culprit_find(ranks, (int)count, NULL, NULL, out).kind == CULPRIT_NONE)
        buf_truncate(out, length);
    places_destroy(places);
}

/* ---- hvdrun stacks: answers to clients of the control socket that ask where the ranks are ---- */

#define ANSWER_MAX ((size_t)16 << 20)

struct request {
    struct control_wait wait;
    bool *wanted; /* by rank; NULL: all */
    int count;
};

struct stacks_request {
    struct job *job;
    struct control_waits requests;
};

static json_t *answer_of(const struct ask *look, const struct look_ranks *ranks)
{
    const struct stack_tree_style style = {"", "", STACK_TREE_ALL_LINES};
    struct buf text AUTO_BUF = BUF_INIT(ANSWER_MAX), missing AUTO_BUF = BUF_INIT(ANSWER_MAX);
    struct buf remarks AUTO_BUF = BUF_INIT(ANSWER_MAX), odd AUTO_BUF = BUF_INIT(ANSWER_MAX);
    struct stack_tree *tree = look_tree(look, true, ranks);
    json_t *answer = json_object();
    ask_missing(look, &missing);
    look_remarks(look, &remarks);
    put_odd_places(look, ranks, &odd);
    stack_tree_print(tree, &style, &text);
    json_object_set_new(answer, "stacks", stacks_json(tree));
    json_object_set_new(answer, "text", json_text(buf_text(&text)));
    json_object_set_new(answer, "missing",
                        missing.length > 0 ? json_text(buf_text(&missing)) : json_null());
    json_object_set_new(answer, "remarks",
                        remarks.length > 0 ? json_text(buf_text(&remarks)) : json_null());
    json_object_set_new(answer, "odd", odd.length > 0 ? json_text(buf_text(&odd)) : json_null());
    stack_tree_destroy(tree);
    return answer;
}

static void looked(void *context, const struct ask *look)
{
    struct request *request = context;
    struct look_ranks ranks = {request->wanted, request->count};
    json_t *answer = answer_of(look, request->wanted != NULL ? &ranks : NULL);
    free(request->wanted);
    control_wait_answer(&request->wait, answer);
}

static void want(void *context, int64_t rank)
{
    const struct request *request = context;
    request->wanted[rank] = true;
}

/* -1: there is no such rank, or none runs. */
static int ask(struct stacks_request *stacks, const struct control_asked *asked, const char *ranks,
               struct error *err)
{
    struct job *job = stacks->job;
    bool native = json_is_true(json_object_get(asked->request, "native"));
    if (job->ranks.running == 0)
        return error_set(err, "no rank runs");
    struct request *request = mem_alloc(sizeof(*request));
    *request = (struct request){.count = job->plan->size};
    if (ranks != NULL)
        request->wanted = mem_array((size_t)request->count + 1, sizeof(*request->wanted));
    if (ranks != NULL && parse_ranks(ranks, request->count - 1, want, request, err) < 0) {
        free(request->wanted);
        free(request);
        return -1;
    }
    control_wait_begin(&stacks->requests, &request->wait, asked->later);
    look_ask(job, native ? LOOK_NATIVE : LOOK_PYTHON, looked, request);
    return 0;
}

/* It answers later. */
static json_t *stacks(void *context, const struct control_asked *asked, struct error *err)
{
    struct job *job = context;
    const char *ranks = NULL;
    if (control_ranks(asked, "ranks", &ranks, err) == 0)
        ask(job_part(job, stacks_request), asked, ranks, err);
    return NULL;
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers)
        return 0;
    struct stacks_request *stacks = mem_alloc(sizeof(*stacks));
    *stacks = (struct stacks_request){.job = job};
    job->own[PART_stacks_request] = stacks;
    return 0;
}

/* Clients that still wait get the answer that the job has ended. */
static void close_part(struct job *job)
{
    struct stacks_request *stacks = job_part(job, stacks_request);
    while (!LIST_EMPTY(&stacks->requests)) {
        struct request *request = (struct request *)LIST_FIRST(&stacks->requests);
        ask_forget(job, request);
        free(request->wanted);
        control_wait_answer(&request->wait, NULL);
    }
    free(stacks);
}

static const struct control_rule requests[] = {{"stacks", stacks}, {NULL}};

const struct driver_part stacks_request_part = {
    .name = "stacks_request", .open = open_part, .close = close_part, .requests = requests};
