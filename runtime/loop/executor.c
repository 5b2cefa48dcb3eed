/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/executor.h"

#include <stdlib.h>

#include "base/mem.h"
#include "loop/operation.h"

void executor_destroy(struct executor *executor)
{
    gpu_set_destroy(executor->gpu_set);
    runner_destroy(&executor->runner);
}

static enum hvd_status failure(const struct executor *executor, struct error *err)
{
    return executor->owner->failure(executor->owner->context, err);
}

static void complete_all(const struct executor *executor, const struct action *action,
                         const struct outcome *outcomes)
{
    struct submission **tokens AUTO_FREE = mem_array(action->count, sizeof(struct submission *));
    for (size_t i = 0; i < action->count; i++)
        tokens[i] = action->parts[i].token;
    submissions_complete(executor->owner->handles, tokens, outcomes, action->count);
}

static void fail_outcomes(const struct executor *executor, struct outcome *outcomes, size_t count,
                          struct error *err)
{
    enum hvd_status status = failure(executor, err);
    for (size_t i = 0; i < count && status != HVD_OK; i++) {
        outcomes[i].status = status;
        outcomes[i].text = err->text;
    }
}

/* The submissions complete later. If it fails, the GPU must not write to them any more. */
static void run_on_gpu(struct executor *executor, const struct action *action)
{
    struct error err = ERROR_INIT;
    enum hvd_status status = failure(executor, &err);
    if (status == HVD_OK) {
        status = gpu_set_run(executor->gpu_set, action->parts, action->count, &err);
        if (status == HVD_OK)
            return;
        executor->failed(executor->context, status, err.text);
    }
    struct outcome *outcomes AUTO_FREE = mem_array(action->count, sizeof *outcomes);
    for (size_t i = 0; i < action->count; i++)
        outcomes[i] = (struct outcome){.status = status, .text = err.text, .number = -1};
    fail_outcomes(executor, outcomes, action->count, &err); /* the first reason counts */
    gpu_set_end(executor->gpu_set, outcomes[0].status, err.text);
    complete_all(executor, action, outcomes);
}

static void run(struct executor *executor, const struct action *action)
{
    const struct set_owner *owner = executor->owner;
    const struct request *first = &action->parts[0].request;
    struct outcome *outcomes AUTO_FREE = mem_array(action->count, sizeof *outcomes);
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < action->count; i++)
        outcomes[i] = (struct outcome)OUTCOME_INIT;
    enum hvd_status status = failure(executor, &err);
    if (status == HVD_OK) {
        status =
            first->kind == KIND_ADD_SET || first->kind == KIND_REMOVE_SET
                ? owner->change(owner->context, first, outcomes, &err)
                : operation_run(&executor->runner, action->parts, action->count, outcomes, &err);
        if (status != HVD_OK)
            executor->failed(executor->context, status, err.text);
    }
    /* The first reason counts: an engine that was aborted reports anything. */
    if (status != HVD_OK)
        fail_outcomes(executor, outcomes, action->count, &err);
    complete_all(executor, action, outcomes);
}

bool executor_run(struct executor *executor, const struct action *action)
{
    bool on_gpu = action->parts[0].request.on_gpu;
    if (on_gpu)
        run_on_gpu(executor, action);
    else
        run(executor, action);
    return !on_gpu;
}

void executor_done(const struct executor *executor, const struct action *action)
{
    struct outcome outcome = OUTCOME_INIT;
    outcome.status = action->status;
    outcome.text = action->text;
    outcome.number = action->rank;
    submission_complete(executor->owner->handles, action->token, &outcome);
}
