/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/set_thread.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/thread.h"

#define NS_PER_MS 1000000

static void lose(struct process_set *set, enum hvd_status status, const char *text)
{
    if (!set->ended)
        set->setup.owner->lost(set->setup.owner->context, status, text);
    else
        set->over = channel_is_alone(set->channel); /* the others have gone, as they should */
}

void set_failed(void *context, enum hvd_status status, const char *text)
{
    lose(context, status, text);
}

static void run(struct process_set *set, struct action *action)
{
    if (!executor_run(&set->executor, action))
        return;
    pthread_mutex_lock(&set->lock);
    core_resumed(set->core, clock_mono_ns());
    pthread_mutex_unlock(&set->lock);
}

static void transmit(struct process_set *set, const struct action *action)
{
    struct error err = ERROR_INIT;
    int rc = 0;
    for (int to = 0; to < set->setup.count; to++)
        if (to != set->rank && (action->to == TO_ALL || action->to == to) &&
            channel_send(set->channel, to, action->bytes, action->length, &err) != 0)
            rc = -1;
    if (rc != 0)
        lose(set, HVD_ERR_PEER_LOST, err.text);
}

void set_tell_loss(const struct process_set *set, enum hvd_status status, const char *text)
{
    if (status == HVD_ERR_PEER_LOST || status == HVD_ERR_ENGINE)
        set->setup.owner->lost(set->setup.owner->context, status, text);
}

static void carry_out(struct process_set *set, struct action *action)
{
    const struct set_owner *owner = set->setup.owner;
    if (action->kind == ACTION_DONE || action->kind == ACTION_ENDED)
        set_tell_loss(set, action->status, action->text);
    switch (action->kind) {
    case ACTION_SEND: transmit(set, action); break;
    case ACTION_RUN: run(set, action); break;
    case ACTION_DONE: executor_done(&set->executor, action); break;
    case ACTION_TUNED: owner->tuned(owner->context, &action->tuning); break;
    case ACTION_STALL:
        owner->stalled(owner->context, set->setup.id, action->text, &action->stall);
        break;
    case ACTION_GOES_ON: owner->goes_on(owner->context, set->setup.id); break;
    case ACTION_ENDED:
        executor_drain(&set->executor);
        set->ended = true;
        set->end_ns = clock_mono_ns() + set->setup.timeout_ms * NS_PER_MS;
        break;
    case ACTION_CLOSE: set->closed = true; break;
    }
}

static void act(struct process_set *set)
{
    struct action action;
    for (;;) {
        pthread_mutex_lock(&set->lock);
        bool there = core_take(set->core, &action);
        pthread_mutex_unlock(&set->lock);
        if (!there)
            return;
        carry_out(set, &action);
        action_destroy(&action);
    }
}

/* Sleeps until there is something to do, and takes what has come. */
static int sleep_and_hear(struct process_set *set, struct buf *message, struct error *err)
{
    int from;
    pthread_mutex_lock(&set->lock);
    int64_t now_ns = clock_mono_ns(), until_ns = core_deadline(set->core);
    until_ns = set->end_ns < until_ns ? set->end_ns : until_ns;
    until_ns = set->leave_until_ns < until_ns ? set->leave_until_ns : until_ns;
    until_ns = set->left_until_ns < until_ns ? set->left_until_ns : until_ns;
    int64_t gpu_ns = gpu_set_deadline(set->executor.gpu_set);
    until_ns = gpu_ns < until_ns ? gpu_ns : until_ns;
    set->asleep_until_ns = until_ns;
    pthread_mutex_unlock(&set->lock);
    int64_t time_ns = until_ns == INT64_MAX ? -1 : until_ns > now_ns ? until_ns - now_ns : 0;
    int rc = channel_wait(set->channel, time_ns, err);
    pthread_mutex_lock(&set->lock);
    set->asleep_until_ns = INT64_MIN;
    now_ns = clock_mono_ns();
    int taken;
    do {
        taken = channel_take(set->channel, &from, message, err);
        if (taken < 0 || (taken > 0 && core_receive(set->core, from, buf_text(message),
                                                    message->length, now_ns, err) != 0))
            rc = -1;
    } while (taken != 0);
    if (core_turn(set->core, now_ns, err) != 0)
        rc = -1;
    if (now_ns >= set->leave_until_ns && !set->ended) {
        core_lost(set->core, HVD_ERR_SHUT_DOWN, "the other ranks did not answer at the end");
        set->over = true;
    }
    /* The connections of others end, too, if they noticed it first. */
    if ((rc != 0 || now_ns >= set->left_until_ns) && set->left_rank >= 0) {
        set->left_until_ns = INT64_MAX;
        if (!core_has_ended(set->core))
            rc = error_set(err, "rank %d has ended without hvd_shutdown()", set->left_rank);
    }
    pthread_mutex_unlock(&set->lock);
    return rc;
}

/* Everything that is pending fails for the owner's reason. */
static bool fail_all(struct process_set *set)
{
    struct error err = ERROR_INIT;
    enum hvd_status status = set->setup.owner->failure(set->setup.owner->context, &err);
    if (status == HVD_OK)
        return false;
    pthread_mutex_lock(&set->lock);
    core_lost(set->core, status, err.text);
    pthread_mutex_unlock(&set->lock);
    act(set);
    channel_hang_up(set->channel); /* at once, whatever the program does now */
    gpu_set_end(set->executor.gpu_set, status, err.text);
    return true;
}

static bool is_over(const struct process_set *set)
{
    if (!set->ended)
        return false;
    bool done = !channel_has_unsent(set->channel) && (set->rank != 0 || set->closed);
    return done || set->over || clock_mono_ns() >= set->end_ns;
}

static void check_gpu(struct process_set *set)
{
    struct error err = ERROR_INIT;
    enum hvd_status status = gpu_set_check(set->executor.gpu_set, &err);
    if (status != HVD_OK)
        set->setup.owner->lost(set->setup.owner->context, status, err.text);
}

static void *serve(void *argument)
{
    struct process_set *set = argument;
    AUTO_BUF struct buf message = BUF_INIT(CORE_MESSAGE_MAX);
    for (;;) {
        struct error err = ERROR_INIT;
        act(set);
        check_gpu(set);
        if (fail_all(set))
            return NULL;
        if (is_over(set)) {
            gpu_set_end(set->executor.gpu_set, HVD_OK, "");
            return NULL;
        }
        if (sleep_and_hear(set, &message, &err) != 0) {
            act(set); /* an end that came before the loss counts */
            lose(set, HVD_ERR_PEER_LOST, err.text);
        }
    }
}

enum hvd_status set_thread_start(struct process_set *set, struct error *err)
{
    char name[32];
    snprintf(name, sizeof name, "hvd-set-%d", set->setup.id);
    int code = thread_start(&set->thread, name, serve, set);
    set->started = code == 0;
    if (set->started)
        return HVD_OK;
    error_errno(err, code, "cannot start a thread");
    return HVD_ERR_MEMORY;
}
