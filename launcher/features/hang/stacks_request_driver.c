/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun stacks`: answers to clients of the control socket that ask where the ranks are. */
#include <jansson.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/later.h"
#include "driver/control/request.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "features/hang/hang_culprit_driver.h"
#include "features/stacks/look_driver.h"
#include "features/stacks/stacks_json.h"
#include "stacks/tree.h"

#define TEXT_MAX ((size_t)16 << 20)

struct request {
    struct stacks_request *stacks;
    struct control_later *later;
    bool *wanted; /* by rank; NULL: all */
    int count;
};

struct stacks_request {
    struct job *job;
    struct request **requests;
    size_t count;
};

static void request_destroy(struct request *request)
{
    free(request->wanted);
    free(request);
}

static void drop(struct stacks_request *stacks, struct request *request)
{
    size_t kept = 0;
    for (size_t i = 0; i < stacks->count; i++) {
        if (stacks->requests[i] != request)
            stacks->requests[kept++] = stacks->requests[i];
    }
    stacks->count = kept;
    request_destroy(request);
}

static json_t *answer_of(const struct ask *look, const struct look_ranks *ranks)
{
    const struct stack_tree_style style = {"", "", STACK_TREE_ALL_LINES};
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX), missing AUTO_BUF = BUF_INIT(TEXT_MAX);
    struct buf remarks AUTO_BUF = BUF_INIT(TEXT_MAX), odd AUTO_BUF = BUF_INIT(TEXT_MAX);
    struct stack_tree *tree = look_tree(look, true, ranks);
    json_t *answer = json_object();
    ask_missing(look, &missing);
    look_remarks(look, &remarks);
    hang_culprit_place(look, ranks, &odd);
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
    struct control_later *later = request->later;
    json_t *answer = answer_of(look, request->wanted != NULL ? &ranks : NULL);
    drop(request->stacks, request);
    control_later_answer(later, answer);
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
    *request = (struct request){.stacks = stacks, .later = asked->later, .count = job->plan->size};
    if (ranks != NULL)
        request->wanted = mem_array((size_t)request->count + 1, sizeof(*request->wanted));
    if (ranks != NULL && parse_ranks(ranks, request->count - 1, want, request, err) < 0) {
        request_destroy(request);
        return -1;
    }
    control_later_take(asked->later);
    stacks->requests = mem_resize_array(stacks->requests, stacks->count + 1, sizeof(request));
    stacks->requests[stacks->count++] = request;
    look_ask(job, native, looked, request);
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
    for (size_t i = 0; i < stacks->count; i++) {
        struct request *request = stacks->requests[i];
        ask_forget(job, request);
        control_later_answer(request->later, json_pack("{s:s}", "error", "the job has ended"));
        request_destroy(request);
    }
    free(stacks->requests);
    free(stacks);
}

static const struct control_rule requests[] = {{"stacks", stacks}, {NULL}};

const struct driver_part stacks_request_part = {
    .name = "stacks_request", .open = open_part, .close = close_part, .requests = requests};
