/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/executor.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"

/* Smaller operations take less time than the way to another thread and back. */
#define LARGE ((int64_t)1 << 20)

struct lane_item {
    struct lane_item *next;
    struct action action;
};

static void lane_init(struct lane *lane)
{
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->changed, NULL);
    lane->end = &lane->first;
}

static void lane_destroy(struct lane *lane)
{
    runner_destroy(&lane->runner);
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
}

static enum hvd_status perform(struct lane *lane, const struct action *action,
                               struct outcome *outcomes, struct error *err)
{
    const struct set_owner *owner = lane->setup->owner;
    const struct request *first = &action->parts[0].request;
    enum hvd_status status = owner->failure(owner->context, err);
    if (status != HVD_OK)
        return status;
    status = first->kind == KIND_ADD_SET || first->kind == KIND_REMOVE_SET
                 ? owner->change(owner->context, first, outcomes, err)
                 : operation_run(&lane->runner, action->parts, action->count, outcomes, err);
    if (status != HVD_OK)
        lane->setup->failed(lane->setup->context, status, err->text);
    return status;
}

/* Runs an operation here, and completes its submissions. The lane must be idle. */
static void lane_run(struct lane *lane, const struct action *action)
{
    struct outcome *outcomes AUTO_FREE = mem_array(action->count, sizeof *outcomes);
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < action->count; i++)
        outcomes[i] = (struct outcome)OUTCOME_INIT;
    if (perform(lane, action, outcomes, &err) != HVD_OK) {
        /* The first reason counts: an engine that was aborted reports anything. */
        enum hvd_status status = lane->setup->owner->failure(lane->setup->owner->context, &err);
        for (size_t i = 0; i < action->count && status != HVD_OK; i++) {
            outcomes[i].status = status;
            outcomes[i].text = err.text;
        }
    }
    submissions_complete(lane->setup->owner->handles, action->parts, action->count, outcomes);
}

/* ---- The thread of a lane -------------------------------------------------------------------- */

/* Waits for an operation, which stays in the list. NULL: the lane ends. */
static struct lane_item *next_item(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    while (lane->first == NULL && !lane->ending)
        pthread_cond_wait(&lane->changed, &lane->lock);
    struct lane_item *item = lane->first;
    pthread_mutex_unlock(&lane->lock);
    return item;
}

static void remove_item(struct lane *lane, struct lane_item *item)
{
    pthread_mutex_lock(&lane->lock);
    lane->first = item->next;
    if (lane->first == NULL) {
        lane->end = &lane->first;
        pthread_cond_broadcast(&lane->changed);
    }
    pthread_mutex_unlock(&lane->lock);
    action_destroy(&item->action);
    free(item);
}

static void *serve(void *argument)
{
    struct lane *lane = argument;
    for (;;) {
        struct lane_item *item = next_item(lane);
        if (item == NULL)
            return NULL;
        lane_run(lane, &item->action);
        remove_item(lane, item);
    }
}

/* -1: it has no thread. Use lane_run(). */
static int lane_start(struct lane *lane, const char *name, struct error *err)
{
    int code = thread_start(&lane->thread, name, serve, lane);
    lane->started = code == 0;
    return code == 0 ? 0 : error_errno(err, code, "cannot start a thread");
}

/* Ends the thread after the operations that remain. */
static void lane_stop(struct lane *lane)
{
    if (!lane->started)
        return;
    pthread_mutex_lock(&lane->lock);
    lane->ending = true;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
    pthread_join(lane->thread, NULL);
    lane->started = false;
}

/* Its thread runs the operation. Takes what the action owns. */
static void lane_add_take(struct lane *lane, struct action *action)
{
    struct lane_item *item = MEM_NEW((struct lane_item){.action = *action});
    *action = (struct action){0};
    pthread_mutex_lock(&lane->lock);
    *lane->end = item;
    lane->end = &item->next;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}

/* Whether no operation remains. */
static bool lane_is_idle(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool idle = lane->first == NULL;
    pthread_mutex_unlock(&lane->lock);
    return idle;
}

/* Waits until it is idle. The caller is the only one that adds operations. */
static void lane_drain(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    while (lane->first != NULL)
        pthread_cond_wait(&lane->changed, &lane->lock);
    pthread_mutex_unlock(&lane->lock);
}

/* ---- The lanes of a set ---------------------------------------------------------------------- */

void executor_init(struct executor *executor, const struct executor_setup *setup)
{
    executor->setup = *setup;
    for (int i = 0; i < setup->lane_count; i++) {
        struct lane *lane = &executor->lanes[i];
        lane->setup = &executor->setup;
        lane->runner = setup->runner;
        lane->runner.comm = setup->comms[i];
        lane_init(lane);
    }
}

int executor_start(struct executor *executor, int32_t set, struct error *err)
{
    for (int i = 0; i < executor->setup.lane_count && executor->setup.lane_count > 1; i++) {
        char name[32];
        snprintf(name, sizeof name, "hvd-%d-lane-%d", set, i);
        if (lane_start(&executor->lanes[i], name, err) != 0)
            return -1;
    }
    return 0;
}

void executor_stop(struct executor *executor)
{
    for (int i = 0; i < executor->setup.lane_count; i++)
        lane_stop(&executor->lanes[i]);
}

void executor_destroy(struct executor *executor)
{
    gpu_set_destroy(executor->gpu_set);
    for (int i = 0; i < executor->setup.lane_count; i++)
        lane_destroy(&executor->lanes[i]);
}

struct engine_comm *executor_take_comm(struct executor *executor, int lane)
{
    if (lane >= executor->setup.lane_count)
        return NULL;
    struct engine_comm *comm = executor->lanes[lane].runner.comm;
    executor->lanes[lane].runner.comm = NULL;
    return comm;
}

void executor_drain(struct executor *executor)
{
    for (int i = 0; i < executor->setup.lane_count; i++)
        lane_drain(&executor->lanes[i]);
}

/* The submissions complete later. If it fails, the GPU must not write to them any more. Its first
 * operation uses the communicator of the first lane. */
static void run_on_gpu(struct executor *executor, const struct action *action)
{
    const struct set_owner *owner = executor->setup.owner;
    struct error err = ERROR_INIT;
    executor_drain(executor);
    enum hvd_status status = owner->failure(owner->context, &err);
    if (status == HVD_OK) {
        status = gpu_set_run(executor->gpu_set, action->parts, action->count, &err);
        if (status == HVD_OK)
            return;
        executor->setup.failed(executor->setup.context, status, err.text);
        enum hvd_status first = owner->failure(owner->context, &err);
        status = first == HVD_OK ? status : first; /* the first reason counts */
    }
    gpu_set_end(executor->gpu_set, status, err.text);
    submissions_fail(owner->handles, action->parts, action->count, status, err.text);
}

/* Only what is the same on all ranks counts: not the parts of an allgather, for example. */
static int64_t bytes_of(const struct action *action)
{
    size_t bytes = 0;
    enum kind kind = action->parts[0].request.kind;
    for (size_t i = 0; i < action->count; i++)
        bytes += request_bytes(&action->parts[i].request);
    return kind == KIND_ALLREDUCE || kind == KIND_BROADCAST ? (int64_t)bytes : 0;
}

static struct lane *choose(struct executor *executor, int64_t bytes)
{
    bool second = executor->setup.lane_count > 1 && bytes >= LARGE && executor->ahead > 0;
    if (bytes >= LARGE)
        executor->ahead += second ? -bytes : bytes;
    return &executor->lanes[second ? 1 : 0];
}

bool executor_run(struct executor *executor, struct action *action)
{
    const struct request *first = &action->parts[0].request;
    if (first->on_gpu) {
        run_on_gpu(executor, action);
        return false;
    }
    if (first->kind == KIND_ADD_SET || first->kind == KIND_REMOVE_SET)
        executor_drain(executor); /* it uses the communicator of the first lane, too */
    int64_t bytes = bytes_of(action);
    struct lane *lane = choose(executor, bytes);
    if (lane->started && (bytes >= LARGE || !lane_is_idle(lane))) {
        lane_add_take(lane, action);
        return false;
    }
    lane_run(lane, action);
    return true;
}

void executor_done(const struct executor *executor, const struct action *action)
{
    struct outcome outcome = OUTCOME_INIT;
    outcome.status = action->status;
    outcome.text = action->text;
    outcome.number = action->rank;
    submission_complete(executor->setup.owner->handles, action->token, &outcome);
}
