/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/set.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "loop/channel.h"
#include "loop/executor.h"

#define NS_PER_MS 1000000
/* A rank that is silent for so many time-outs of the engine is lost. An operation may take one. */
#define SILENCE_TIMEOUTS 2
#define LEFT_NS ((int64_t)1000 * NS_PER_MS)      /* for the last message of a rank that has ended */
#define GPU_LIMIT_NS (600 * (int64_t)1000000000) /* without HOROVOD_STALL_SHUTDOWN_TIME_SECONDS */

/* ---- Its thread ------------------------------------------------------------------------------ */

static void lose(struct process_set *set, enum hvd_status status, const char *text)
{
    if (!set->ended)
        set->maker->owner->lost(set->maker->owner->context, status, text);
    else
        set->over = channel_is_alone(set->channel); /* the others have gone, as they should */
}

/* An operation has failed. `context`: the set. In any thread. */
static void set_failed(void *context, enum hvd_status status, const char *text)
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
    for (int to = 0; to < set->count; to++)
        if (to != set->rank && (action->to == TO_ALL || action->to == to) &&
            channel_send(set->channel, to, action->bytes, action->length, &err) != 0)
            rc = -1;
    if (rc != 0)
        lose(set, HVD_ERR_PEER_LOST, err.text);
}

/* The core has heard from the root that the job has failed. The owner hears it before the program,
 * which may ask it as soon as one operation fails. */
static void set_tell_loss(const struct process_set *set, enum hvd_status status, const char *text)
{
    if (status == HVD_ERR_PEER_LOST || status == HVD_ERR_ENGINE)
        set->maker->owner->lost(set->maker->owner->context, status, text);
}

static void carry_out(struct process_set *set, struct action *action)
{
    const struct set_owner *owner = set->maker->owner;
    if (action->kind == ACTION_DONE || action->kind == ACTION_ENDED)
        set_tell_loss(set, action->status, action->text);
    switch (action->kind) {
    case ACTION_SEND: transmit(set, action); break;
    case ACTION_RUN: run(set, action); break;
    case ACTION_DONE: executor_done(&set->executor, action); break;
    case ACTION_TUNED: owner->tuned(owner->context, &action->tuning); break;
    case ACTION_STALL: owner->stalled(owner->context, set->id, action->text, &action->stall); break;
    case ACTION_GOES_ON: owner->goes_on(owner->context, set->id); break;
    case ACTION_ENDED:
        executor_drain(&set->executor);
        set->ended = true;
        set->end_ns = clock_mono_ns() + set->maker->setup->timeout_ms * NS_PER_MS;
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

/* A GPU wakes the thread that is about to sleep. */
static void hang_bell(const struct process_set *set)
{
    struct error err = ERROR_INIT;
    enum hvd_status status = gpu_set_sleeps(set->executor.gpu_set, &err);
    if (status != HVD_OK)
        set->maker->owner->lost(set->maker->owner->context, status, err.text);
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
    int64_t time_ns = until_ns == INT64_MAX ? -1 : until_ns > now_ns ? until_ns - now_ns : 0;
    set->asleep_until_ns = until_ns;
    set->looks = time_ns == 0;
    pthread_mutex_unlock(&set->lock);
    if (time_ns != 0)
        hang_bell(set);
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
    enum hvd_status status = set->maker->owner->failure(set->maker->owner->context, &err);
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
        set->maker->owner->lost(set->maker->owner->context, status, err.text);
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

static enum hvd_status set_thread_start(struct process_set *set, struct error *err)
{
    char name[32];
    snprintf(name, sizeof name, "hvd-set-%d", set->id);
    int code = thread_start(&set->thread, name, serve, set);
    set->started = code == 0;
    if (set->started)
        return HVD_OK;
    error_errno(err, code, "cannot start a thread");
    return HVD_ERR_MEMORY;
}

/* ---- Its beginning and its end --------------------------------------------------------------- */

struct process_set *set_create(const struct set_maker *maker, int32_t id, const int *ranks,
                               int count)
{
    struct process_set *set = mem_alloc(sizeof *set);
    set->maker = maker;
    set->id = id;
    set->ranks = mem_dup(ranks, (size_t)count * sizeof *ranks);
    set->count = count;
    set->rank = -1;
    for (int i = 0; i < count; i++)
        if (ranks[i] == maker->place->rank)
            set->rank = i;
    set->asleep_until_ns = INT64_MIN;
    set->end_ns = set->leave_until_ns = set->left_until_ns = INT64_MAX;
    set->left_rank = -1;
    atomic_init(&set->holders, 1);
    pthread_mutex_init(&set->lock, NULL);
    return set;
}

struct process_set *set_hold(struct process_set *set)
{
    atomic_fetch_add(&set->holders, 1);
    return set;
}

void set_release(struct process_set *set)
{
    if (set == NULL || atomic_fetch_sub(&set->holders, 1) > 1)
        return;
    core_destroy(set->core);
    executor_destroy(&set->executor);
    channel_close(set->channel);
    pthread_mutex_destroy(&set->lock);
    free(set->ranks);
    free(set);
}

static bool has_failed(void *context)
{
    const struct set_owner *owner = ((const struct process_set *)context)->maker->owner;
    return owner->failure(owner->context, NULL) != HVD_OK;
}

static struct gpu_set *make_gpu_set(struct process_set *set)
{
    int64_t limit_ns = set->maker->knobs->give_up_ns;
    struct gpu_set_setup setup = {.runner = &set->executor.lanes[0].runner,
                                  .gpus = set->maker->owner->gpus,
                                  .handles = set->maker->owner->handles,
                                  .channel = set->channel,
                                  .timeout_ms = set->maker->setup->timeout_ms,
                                  .completes_at_launch = set->maker->knobs->completes_at_launch,
                                  .limit_ns = limit_ns > 0 ? limit_ns : GPU_LIMIT_NS,
                                  .stop = has_failed,
                                  .context = set};
    return gpu_set_create(&setup);
}

static void watch_one(void *context, int fd, int rank)
{
    const struct process_set *set = context;
    set->maker->owner->watch(set->maker->owner->context, fd, set->id, rank);
}

static struct core *make_core(const struct process_set *set)
{
    const struct set_maker *maker = set->maker;
    const struct knobs *knobs = maker->knobs;
    const struct core_config config = {
        .set = set->id,
        .rank = set->rank,
        .size = set->count,
        .ranks = set->ranks,
        .world_size = maker->place->size,
        .capacity = knobs->capacity,
        .threshold = knobs->threshold,
        .cycle_ns = knobs->cycle_ns,
        .warn_ns = knobs->warn_ns,
        .give_up_ns = knobs->give_up_ns,
        .silence_ns = SILENCE_TIMEOUTS * maker->setup->timeout_ms * NS_PER_MS,
        .tuner = set->id == 0 ? knobs->tuner : (struct tuner_setup){0},
        .trace = maker->trace};
    return core_create(&config, clock_mono_ns());
}

enum hvd_status set_start(struct process_set *set, struct engine_comm **comms, struct error *err)
{
    const struct set_maker *maker = set->maker;
    struct channel_setup channel = {
        .set = {maker->engine, comms[0], set->rank, set->count, maker->setup->timeout_ms},
        .ranks = set->ranks,
        .interface = maker->setup->interface,
        .stop = maker->stop};
    const struct executor_setup executor = {.owner = maker->owner,
                                            .runner = {.engine = maker->engine,
                                                       .set = set->id,
                                                       .rank = set->rank,
                                                       .size = set->count,
                                                       .ranks = set->ranks,
                                                       .trace = maker->trace},
                                            .comms = comms,
                                            .lane_count = maker->engine->lanes,
                                            .failed = set_failed,
                                            .context = set};
    executor_init(&set->executor, &executor);
    enum hvd_status status = channel_open(&channel, &set->channel, err);
    if (status != HVD_OK)
        return status;
    set->core = make_core(set);
    set->executor.gpu_set = make_gpu_set(set);
    channel_each(set->channel, watch_one, set);
    if (executor_start(&set->executor, set->id, err) != 0)
        return HVD_ERR_MEMORY;
    return set_thread_start(set, err);
}

void set_stop(struct process_set *set)
{
    if (set->started)
        pthread_join(set->thread, NULL);
    set->started = false;
    executor_stop(&set->executor);
}

/* ---- Programs' threads ----------------------------------------------------------------------- */

/* With the lock held; releases it. Wakes the thread if it would sleep for too long. */
static void unlock_and_wake(struct process_set *set)
{
    int64_t until_ns = gpu_set_is_awaited(set->executor.gpu_set) ? 0 : core_deadline(set->core);
    bool wake = !set->looks && until_ns < set->asleep_until_ns;
    if (wake)
        set->asleep_until_ns = INT64_MIN;
    pthread_mutex_unlock(&set->lock);
    if (wake)
        channel_ring(set->channel);
}

enum hvd_status set_submit(struct process_set *set, struct request *requests,
                           struct submission *tokens, size_t count, struct error *err)
{
    enum hvd_status status = HVD_OK;
    int64_t now_ns = clock_mono_ns();
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < count && count > 1 && status == HVD_OK; i++)
        status = core_check(set->core, &requests[i], err); /* all of them, or none */
    for (size_t i = 0; i < count; i++)
        if (status != HVD_OK)
            request_destroy(&requests[i]);
        else
            status = core_submit(set->core, &requests[i], &tokens[i], now_ns, err);
    unlock_and_wake(set);
    if (status != HVD_OK)
        set_tell_loss(set, status, err->text);
    return status;
}

void set_hurry(struct process_set *set, const struct submission *submission)
{
    pthread_mutex_lock(&set->lock);
    core_hurry(set->core, submission);
    unlock_and_wake(set);
}

void set_tune(struct process_set *set, const struct tune_point *point)
{
    if (set->core == NULL)
        return;
    pthread_mutex_lock(&set->lock);
    core_tune(set->core, point);
    pthread_mutex_unlock(&set->lock);
}

void set_leave(struct process_set *set, enum hvd_status why)
{
    if (set->core == NULL)
        return;
    pthread_mutex_lock(&set->lock);
    core_leave(set->core, why);
    set->leave_until_ns = clock_mono_ns() + set->maker->setup->timeout_ms * NS_PER_MS;
    pthread_mutex_unlock(&set->lock);
    set_ring(set);
}

/* A thread that sleeps sees it itself, and a set that has ended does not mind. */
void set_gone(struct process_set *set, int rank)
{
    char text[ERROR_TEXT_MAX];
    pthread_mutex_lock(&set->lock);
    bool minds =
        set->core != NULL && !core_has_ended(set->core) && set->asleep_until_ns == INT64_MIN;
    pthread_mutex_unlock(&set->lock);
    snprintf(text, sizeof text, "the connection to rank %d ended", rank);
    if (minds)
        set->maker->owner->lost(set->maker->owner->context, HVD_ERR_PEER_LOST, text);
}

void set_left(struct process_set *set, int rank)
{
    bool is_member = false;
    for (int i = 0; i < set->count; i++)
        is_member = is_member || set->ranks[i] == rank;
    if (!is_member || set->core == NULL)
        return;
    pthread_mutex_lock(&set->lock);
    if (set->left_rank < 0) {
        set->left_rank = rank;
        set->left_until_ns = clock_mono_ns() + LEFT_NS;
    }
    pthread_mutex_unlock(&set->lock);
    set_ring(set);
}

int set_waits(struct process_set *set, struct stall stalls[CORE_WAITS_MAX])
{
    if (set->rank != 0 || set->core == NULL)
        return -1;
    pthread_mutex_lock(&set->lock);
    int count = core_waits(set->core, clock_mono_ns(), stalls);
    pthread_mutex_unlock(&set->lock);
    return count;
}

void set_ring(struct process_set *set)
{
    if (set->channel != NULL)
        channel_ring(set->channel);
}
