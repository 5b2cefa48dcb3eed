/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/lane.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"
#include "loop/operation.h"

struct lane_item {
    struct lane_item *next;
    struct action action;
};

void lane_init(struct lane *lane)
{
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->changed, NULL);
    lane->end = &lane->first;
}

void lane_destroy(struct lane *lane)
{
    runner_destroy(&lane->runner);
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
}

static void complete_all(const struct lane *lane, const struct action *action,
                         const struct outcome *outcomes)
{
    struct submission **tokens AUTO_FREE = mem_array(action->count, sizeof(struct submission *));
    for (size_t i = 0; i < action->count; i++)
        tokens[i] = action->parts[i].token;
    submissions_complete(lane->owner->handles, tokens, outcomes, action->count);
}

static enum hvd_status perform(struct lane *lane, const struct action *action,
                               struct outcome *outcomes, struct error *err)
{
    const struct set_owner *owner = lane->owner;
    const struct request *first = &action->parts[0].request;
    enum hvd_status status = owner->failure(owner->context, err);
    if (status != HVD_OK)
        return status;
    status = first->kind == KIND_ADD_SET || first->kind == KIND_REMOVE_SET
                 ? owner->change(owner->context, first, outcomes, err)
                 : operation_run(&lane->runner, action->parts, action->count, outcomes, err);
    if (status != HVD_OK)
        lane->failed(lane->context, status, err->text);
    return status;
}

void lane_run(struct lane *lane, const struct action *action)
{
    struct outcome *outcomes AUTO_FREE = mem_array(action->count, sizeof *outcomes);
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < action->count; i++)
        outcomes[i] = (struct outcome)OUTCOME_INIT;
    if (perform(lane, action, outcomes, &err) != HVD_OK) {
        /* The first reason counts: an engine that was aborted reports anything. */
        enum hvd_status status = lane->owner->failure(lane->owner->context, &err);
        for (size_t i = 0; i < action->count && status != HVD_OK; i++) {
            outcomes[i].status = status;
            outcomes[i].text = err.text;
        }
    }
    complete_all(lane, action, outcomes);
}

/* ---- Its thread -------------------------------------------------------------------------------
 */

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

int lane_start(struct lane *lane, const char *name, struct error *err)
{
    int code = thread_start(&lane->thread, name, serve, lane);
    lane->started = code == 0;
    return code == 0 ? 0 : error_errno(err, code, "cannot start a thread");
}

void lane_stop(struct lane *lane)
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

void lane_add_take(struct lane *lane, struct action *action)
{
    struct lane_item *item = mem_alloc(sizeof *item);
    *item = (struct lane_item){.action = *action};
    *action = (struct action){0};
    pthread_mutex_lock(&lane->lock);
    *lane->end = item;
    lane->end = &item->next;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}

bool lane_is_idle(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool idle = lane->first == NULL;
    pthread_mutex_unlock(&lane->lock);
    return idle;
}

void lane_drain(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    while (lane->first != NULL)
        pthread_cond_wait(&lane->changed, &lane->lock);
    pthread_mutex_unlock(&lane->lock);
}
