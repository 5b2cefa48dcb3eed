/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/set.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "loop/set_thread.h"

#define NS_PER_MS 1000000
#define LEFT_NS ((int64_t)1000 * NS_PER_MS)      /* for the last message of a rank that has ended */
#define GPU_LIMIT_NS (600 * (int64_t)1000000000) /* without HOROVOD_STALL_SHUTDOWN_TIME_SECONDS */

static int find_rank(const struct set_setup *setup)
{
    for (int i = 0; i < setup->count; i++)
        if (setup->ranks[i] == setup->own_rank)
            return i;
    return -1;
}

struct process_set *set_create(const struct set_setup *setup)
{
    struct process_set *set = mem_alloc(sizeof *set);
    set->setup = *setup;
    set->ranks = mem_dup(setup->ranks, (size_t)setup->count * sizeof *set->ranks);
    set->setup.ranks = set->ranks;
    set->rank = find_rank(setup);
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

int32_t set_id(const struct process_set *set)
{
    return set->setup.id;
}

int set_size(const struct process_set *set)
{
    return set->setup.count;
}

int set_rank(const struct process_set *set)
{
    return set->rank;
}

const int *set_ranks(const struct process_set *set)
{
    return set->ranks;
}

struct gpus *set_gpus(const struct process_set *set)
{
    return set->setup.owner->gpus;
}

int set_claim_gpu(const struct process_set *set, int device)
{
    return gpu_set_claim(set->executor.gpu_set, device);
}

struct engine_comm *set_comm(const struct process_set *set)
{
    return set->executor.lanes[0].runner.comm;
}

static bool has_failed(void *context)
{
    const struct set_owner *owner = ((const struct process_set *)context)->setup.owner;
    return owner->failure(owner->context, NULL) != HVD_OK;
}

static struct gpu_set *make_gpu_set(struct process_set *set)
{
    int64_t limit_ns = set->setup.knobs.give_up_ns;
    struct gpu_set_setup setup = {.runner = &set->executor.lanes[0].runner,
                                  .gpus = set->setup.owner->gpus,
                                  .handles = set->setup.owner->handles,
                                  .channel = set->channel,
                                  .timeout_ms = set->setup.timeout_ms,
                                  .completes_at_launch = set->setup.completes_at_launch,
                                  .limit_ns = limit_ns > 0 ? limit_ns : GPU_LIMIT_NS,
                                  .stop = has_failed,
                                  .context = set};
    return gpu_set_create(&setup);
}

static void watch_one(void *context, int fd, int rank)
{
    const struct process_set *set = context;
    set->setup.owner->watch(set->setup.owner->context, fd, set->setup.id, rank);
}

enum hvd_status set_start(struct process_set *set, struct engine_comm **comms, struct error *err)
{
    const struct set_setup *setup = &set->setup;
    struct channel_setup channel = {.engine = setup->engine,
                                    .comm = comms[0],
                                    .rank = set->rank,
                                    .size = setup->count,
                                    .ranks = set->ranks,
                                    .interface = setup->interface,
                                    .timeout_ms = setup->timeout_ms,
                                    .stop = setup->stop};
    const struct executor_setup executor = {.owner = setup->owner,
                                            .runner = {.engine = setup->engine,
                                                       .set = setup->id,
                                                       .rank = set->rank,
                                                       .size = setup->count,
                                                       .ranks = set->ranks,
                                                       .trace = setup->knobs.trace},
                                            .comms = comms,
                                            .lane_count = setup->engine->lanes,
                                            .failed = set_failed,
                                            .context = set};
    executor_init(&set->executor, &executor);
    enum hvd_status status = channel_open(&channel, &set->channel, err);
    if (status != HVD_OK)
        return status;
    struct core_config config = setup->knobs;
    config.set = setup->id;
    config.rank = set->rank;
    config.size = setup->count;
    config.ranks = set->ranks;
    config.world_size = setup->world_size;
    set->core = core_create(&config, clock_mono_ns());
    set->executor.gpu_set = make_gpu_set(set);
    channel_each(set->channel, watch_one, set);
    if (executor_start(&set->executor, setup->id, err) != 0)
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

struct engine_comm *set_take_comm(struct process_set *set, int lane)
{
    return executor_take_comm(&set->executor, lane);
}

/* ---- Programs' threads ----------------------------------------------------------------------- */

/* With the lock held; releases it. Wakes the thread if it would sleep for too long. */
static void unlock_and_wake(struct process_set *set)
{
    int64_t until_ns = gpu_set_is_awaited(set->executor.gpu_set) ? 0 : core_deadline(set->core);
    bool wake = until_ns < set->asleep_until_ns;
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
    set->leave_until_ns = clock_mono_ns() + set->setup.timeout_ms * NS_PER_MS;
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
        set->setup.owner->lost(set->setup.owner->context, HVD_ERR_PEER_LOST, text);
}

void set_left(struct process_set *set, int rank)
{
    bool is_member = false;
    for (int i = 0; i < set->setup.count; i++)
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
