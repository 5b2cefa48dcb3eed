/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job_control_stacks.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "driver/run/hang_culprit.h"
#include "driver/run/look.h"
#include "driver/tell/json_text.h"
#include "driver/tell/report.h"
#include "stacks/tree.h"

#define TEXT_MAX ((size_t)16 << 20)

struct request {
    struct job_stacks *stacks;
    struct control_later *later;
    bool *wanted; /* by rank; NULL: all */
    int count;
};

struct job_stacks {
    struct job *job;
    struct request **requests;
    size_t count;
};

struct job_stacks *job_stacks_create(struct job *job)
{
    struct job_stacks *stacks = mem_alloc(sizeof(*stacks));
    *stacks = (struct job_stacks){.job = job};
    return stacks;
}

static void request_destroy(struct request *request)
{
    free(request->wanted);
    free(request);
}

static void drop(struct job_stacks *stacks, struct request *request)
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
    json_object_set_new(answer, "stacks", report_stack_tree(tree));
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

int job_stacks_ask(struct job_stacks *stacks, const char *ranks, bool native,
                   struct control_later *later, struct error *err)
{
    struct job *job = stacks->job;
    struct request *request = NULL;
    if (job->ranks.running == 0)
        return error_set(err, "no rank runs");
    request = mem_alloc(sizeof(*request));
    *request = (struct request){.stacks = stacks, .later = later, .count = job->plan->size};
    if (ranks != NULL)
        request->wanted = mem_array((size_t)request->count + 1, sizeof(*request->wanted));
    if (ranks != NULL && parse_ranks(ranks, request->count - 1, want, request, err) < 0) {
        request_destroy(request);
        return -1;
    }
    control_later_take(later);
    stacks->requests = mem_resize_array(stacks->requests, stacks->count + 1, sizeof(request));
    stacks->requests[stacks->count++] = request;
    look_ask(job, native, looked, request);
    return 0;
}

void job_stacks_destroy(struct job_stacks *stacks)
{
    for (size_t i = 0; stacks != NULL && i < stacks->count; i++) {
        struct request *request = stacks->requests[i];
        ask_forget(stacks->job, request);
        control_later_answer(request->later, json_pack("{s:s}", "error", "the job has ended"));
        request_destroy(request);
    }
    if (stacks != NULL)
        free(stacks->requests);
    free(stacks);
}
