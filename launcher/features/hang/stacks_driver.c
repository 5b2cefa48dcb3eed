/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/stacks_driver.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/request.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "features/hang/culprit.h"
#include "stacks/tree.h"

#define ANSWER_MAX ((size_t)16 << 20)

struct asked {
    struct places *places;
    const struct look_ranks *ranks; /* NULL: all */
};

static void take_stack(void *context, int seat, const struct stack *stack)
{
    const struct asked *asked = context;
    int rank = stack->rank;
    (void)seat;
    if (asked->ranks == NULL ||
        (rank >= 0 && rank < asked->ranks->count && asked->ranks->wanted[rank]))
        places_add(asked->places, stack);
}

struct places *stacks_places(const struct ask *look, const struct look_ranks *ranks)
{
    struct asked asked = {places_create(), ranks};
    look_walk(look, take_stack, &asked);
    places_find(asked.places);
    return asked.places;
}

/* Of one look alone: the ranks at another place than most, or that cannot go on. Appends nothing if
 * no rank stands out. `only`: NULL for all. */
static void put_odd_places(const struct ask *look, const struct look_ranks *only, struct buf *out)
{
    struct places *places = stacks_places(look, only);
    size_t count = places_count(places);
    struct culprit_rank *ranks AUTO_FREE = mem_array(count + 1, sizeof(*ranks));
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct culprit_rank){
            .rank = places_rank(places, i), .way = HANG_MOVES, .launched = -1, .enqueued = -1};
        ranks[i].place = *places_of(places, ranks[i].rank);
    }
    size_t length = out->length;
    if (culprit_find(ranks, (int)count, NULL, NULL, out).kind == CULPRIT_NONE)
        buf_truncate(out, length);
    places_destroy(places);
}

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
    json_object_set_new(answer, "missing", json_text_or_null(buf_text(&missing)));
    json_object_set_new(answer, "remarks", json_text_or_null(buf_text(&remarks)));
    json_object_set_new(answer, "odd", json_text_or_null(buf_text(&odd)));
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
    struct request *request = MEM_NEW((struct request){.count = job->plan->size});
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
    job->own[PART_stacks_request] = MEM_NEW((struct stacks_request){.job = job});
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
