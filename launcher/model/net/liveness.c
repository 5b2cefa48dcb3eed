/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/liveness.h"

void liveness_init(struct liveness *l, int64_t suspect_ms, int64_t lost_ms, int64_t now_ms)
{
    *l = (struct liveness){.suspect_ms = suspect_ms < lost_ms ? suspect_ms : lost_ms,
                           .lost_ms = lost_ms,
                           .heard_ms = now_ms,
                           .ticked_ms = now_ms,
                           .due_ms = now_ms + LIVENESS_PERIOD_MS,
                           .state = LIVENESS_ALIVE};
}

void liveness_heard(struct liveness *l, int64_t now_ms)
{
    l->heard_ms = now_ms;
    l->late_ms = 0;
    l->host_answers = l->excused = false;
    if (l->state == LIVENESS_SUSPECT)
        l->state = LIVENESS_ALIVE;
}

bool liveness_wants_bytes(const struct liveness *l, int64_t now_ms)
{
    return !l->excused && liveness_silence_ms(l, now_ms) >= l->suspect_ms;
}

void liveness_bytes_wait(struct liveness *l, int64_t now_ms)
{
    liveness_heard(l, now_ms);
    l->excused = true;
}

void liveness_host_answers(struct liveness *l)
{
    l->host_answers = true;
}

int64_t liveness_limit_ms(const struct liveness *l)
{
    return l->host_answers ? 2 * l->lost_ms : l->lost_ms;
}

/* A tick that is late by more than half the suspicion time says that we did not look, not that the
 * peer was silent. */
static bool is_stalled(const struct liveness *l, int64_t now_ms)
{
    return now_ms - l->ticked_ms > LIVENESS_PERIOD_MS + l->suspect_ms / 2;
}

int64_t liveness_stall_ms(const struct liveness *l, int64_t now_ms)
{
    if (!l->suspended && is_stalled(l, now_ms))
        return now_ms - l->ticked_ms;
    return now_ms - l->stall_ended_ms < l->suspect_ms ? l->stalled_ms : 0;
}

/* The silence that is surely the peer's. */
static int64_t counted_ms(const struct liveness *l, int64_t now_ms)
{
    return now_ms - l->heard_ms - l->late_ms;
}

static void count_lateness(struct liveness *l, int64_t now_ms)
{
    int64_t late_ms = now_ms - l->due_ms, silence_ms = now_ms - l->heard_ms;
    if (late_ms > 0)
        l->late_ms += late_ms;
    if (l->late_ms > silence_ms)
        l->late_ms = silence_ms;
}

static enum liveness_state judge(struct liveness *l, int64_t now_ms)
{
    int64_t silence = counted_ms(l, now_ms);
    if (silence >= liveness_limit_ms(l))
        l->state = LIVENESS_LOST;
    else if (silence >= l->suspect_ms)
        l->state = LIVENESS_SUSPECT;
    return l->state;
}

enum liveness_state liveness_tick(struct liveness *l, int64_t now_ms)
{
    bool stalled = is_stalled(l, now_ms);
    int64_t since_ms = now_ms - l->ticked_ms;
    l->ticked_ms = now_ms;
    if (l->suspended || l->state == LIVENESS_LOST)
        return l->state;
    if (stalled) {
        l->stalled_ms = since_ms;
        l->stall_ended_ms = now_ms;
        liveness_heard(l, now_ms);
    }
    count_lateness(l, now_ms);
    judge(l, now_ms);
    l->due_ms = now_ms + liveness_next_ms(l, now_ms);
    return l->state;
}

int64_t liveness_next_ms(const struct liveness *l, int64_t now_ms)
{
    if (l->suspended)
        return LIVENESS_PERIOD_MS;
    int64_t limit = l->state == LIVENESS_ALIVE ? l->suspect_ms : liveness_limit_ms(l);
    int64_t left = limit - counted_ms(l, now_ms);
    if (left < 1)
        left = 1;
    return left < LIVENESS_PERIOD_MS ? left : LIVENESS_PERIOD_MS;
}

void liveness_suspend(struct liveness *l, bool suspended, int64_t now_ms)
{
    l->suspended = suspended;
    l->ticked_ms = now_ms;
    l->due_ms = now_ms + LIVENESS_PERIOD_MS;
    liveness_heard(l, now_ms);
}

int64_t liveness_silence_ms(const struct liveness *l, int64_t now_ms)
{
    return now_ms - l->heard_ms;
}

#define MILLION 1000000
/* No clock shows more (18 years): what is beyond comes from a broken agent, and sums must not
 * overflow. */
#define CLOCK_RANGE (INT64_MAX / 16)

static bool is_sane(int64_t time_ns)
{
    return time_ns >= -CLOCK_RANGE && time_ns <= CLOCK_RANGE;
}

int64_t clock_offset_error(const struct clock_offset *clock, int64_t now_ns)
{
    if (!clock->measured)
        return CLOCK_UNKNOWN;
    int64_t age = now_ns > clock->measured_ns ? now_ns - clock->measured_ns : 0;
    return clock->error_ns + age / MILLION * CLOCK_DRIFT_PPM;
}

void clock_offset_sample(struct clock_offset *clock, int64_t sent_ns, int64_t theirs_ns,
                         int64_t received_ns)
{
    if (!is_sane(sent_ns) || !is_sane(theirs_ns) || received_ns < sent_ns)
        return;
    int64_t error = (received_ns - sent_ns) / 2;
    if (error >= clock_offset_error(clock, received_ns))
        return;
    *clock = (struct clock_offset){.measured = true,
                                   .offset_ns = theirs_ns - (sent_ns + error),
                                   .error_ns = error,
                                   .measured_ns = received_ns};
}

int64_t clock_offset_to_ours(const struct clock_offset *clock, int64_t theirs_ns)
{
    int64_t sane = theirs_ns < -CLOCK_RANGE  ? -CLOCK_RANGE
                   : theirs_ns > CLOCK_RANGE ? CLOCK_RANGE
                                             : theirs_ns;
    return sane - clock->offset_ns;
}
