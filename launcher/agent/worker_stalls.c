/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_stalls.h"

#include <stdlib.h>

#include "base/mem.h"
#include "wire/control.pb-c.h"

enum {
    BURST = 8,      /* stalls that may come at once, */
    REFILL = 1000,  /* and one more in so many milliseconds */
    WAITS_MAX = 16, /* in answer to one question */
    WAITS_AGAIN_MS = 1000
};

void worker_stalls_begin(struct worker_stalls *stalls, const struct post *post, uint32_t seat,
                         int64_t now_ms)
{
    *stalls = (struct worker_stalls){
        .post = post, .seat = seat, .allowance = BURST, .refilled_ms = now_ms};
}

static void post_over(const struct worker_stalls *stalls, uint32_t set)
{
    Hvdrun__Stall message = HVDRUN__STALL__INIT;
    message.seat = stalls->seat;
    message.set = set;
    message.over = true;
    post_message(stalls->post, FRAME_STALL, &message.base);
}

void worker_stalls_end(const struct worker_stalls *stalls)
{
    for (int i = 0; i < stalls->count; i++)
        post_over(stalls, stalls->sets[i]);
}

uint32_t worker_stalls_round(const struct worker_stalls *stalls, int64_t now_ms)
{
    bool early = stalls->round != 0 && now_ms - stalls->round_ms < WAITS_AGAIN_MS;
    return early ? 0 : stalls->round + 1;
}

void worker_stalls_asked(struct worker_stalls *stalls, int64_t now_ms)
{
    stalls->round++;
    stalls->round_ms = now_ms;
    stalls->waits = WAITS_MAX;
}

static int index_of(const struct worker_stalls *stalls, uint32_t set)
{
    for (int i = 0; i < stalls->count; i++) {
        if (stalls->sets[i] == set)
            return i;
    }
    return -1;
}

/* The driver prints every stall that it hears of: a worker must not flood the user's terminal. */
static bool may_report(struct worker_stalls *stalls, int64_t now_ms)
{
    int64_t more = (now_ms - stalls->refilled_ms) / REFILL;
    if (more > 0) {
        stalls->allowance =
            more < BURST - stalls->allowance ? stalls->allowance + (int)more : BURST;
        stalls->refilled_ms = now_ms;
    }
    return stalls->allowance-- > 0 || (stalls->allowance = 0);
}

/* Pairs of first and last. The caller frees it. */
static uint32_t *flat(const struct line_ranks *ranks)
{
    uint32_t *list = mem_array((size_t)ranks->count * 2 + 1, sizeof(*list));
    for (size_t i = 0; i < ranks->count; i++) {
        list[2 * i] = ranks->ranges[i].first;
        list[2 * i + 1] = ranks->ranges[i].last;
    }
    return list;
}

static void post_stall(const struct worker_stalls *stalls, struct line_packet *packet)
{
    AUTO_FREE uint32_t *waiting = flat(&packet->waiting);
    AUTO_FREE uint32_t *missing = flat(&packet->missing);
    Hvdrun__Stall message = HVDRUN__STALL__INIT;
    message.seat = stalls->seat;
    message.set = packet->set;
    message.seconds = packet->seconds;
    message.others = packet->others;
    message.operation = packet->operation;
    message.name = packet->name;
    message.waiting = waiting;
    message.n_waiting = 2 * (size_t)packet->waiting.count;
    message.missing = missing;
    message.n_missing = 2 * (size_t)packet->missing.count;
    message.more_waiting = packet->waiting.more;
    message.more_missing = packet->missing.more;
    message.round = packet->type == LINE_WAITS ? packet->round : 0;
    post_message(stalls->post, FRAME_STALL, &message.base);
}

static void take_stalled(struct worker_stalls *stalls, struct line_packet *packet, int64_t now_ms)
{
    bool known = index_of(stalls, packet->set) >= 0;
    if ((!known && stalls->count == WORKER_STALLS_SETS) || !may_report(stalls, now_ms))
        return;
    if (!known)
        stalls->sets[stalls->count++] = packet->set;
    post_stall(stalls, packet);
}

static void take_waits(struct worker_stalls *stalls, struct line_packet *packet)
{
    if (packet->round != stalls->round || stalls->waits == 0)
        return;
    stalls->waits--;
    post_stall(stalls, packet);
}

static void take_goes_on(struct worker_stalls *stalls, uint32_t set)
{
    int at = index_of(stalls, set);
    if (at < 0)
        return;
    stalls->sets[at] = stalls->sets[--stalls->count];
    post_over(stalls, set);
}

void worker_stalls_take(struct worker_stalls *stalls, struct line_packet *packet, int64_t now_ms)
{
    if (packet->type == LINE_STALLED)
        take_stalled(stalls, packet, now_ms);
    else if (packet->type == LINE_WAITS)
        take_waits(stalls, packet);
    else if (packet->type == LINE_GOES_ON)
        take_goes_on(stalls, packet->set);
}
