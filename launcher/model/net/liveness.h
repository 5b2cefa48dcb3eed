/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What heartbeats tell of the other end of a link (D5): whether it is alive, and how far its clock
 * is from ours. Pure: time is a parameter.
 *
 * Rule: silence of `suspect_ms` makes the peer suspect, silence of `lost_ms` makes it lost. Any
 * frame makes it alive again. The time by which the detector's own ticks were late does not count:
 * it may not have read yet what has come. A detector whose ticks came much too late was stalled,
 * and restarts the peer's clock. So do bytes that wait to be read, but once only until there is a
 * whole frame. While suspended, no time passes. A silence may last twice as long if something else
 * has shown that the peer's host answers. On a lossy link TCP delays heartbeats, because it repeats
 * in order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LIVENESS_PERIOD_MS 1000
#define LIVENESS_SUSPECT_MS 5000

enum liveness_state { LIVENESS_ALIVE, LIVENESS_SUSPECT, LIVENESS_LOST };

struct liveness {
    int64_t suspect_ms, lost_ms;
    int64_t heard_ms;                   /* when the peer was last heard */
    int64_t ticked_ms, due_ms;          /* our last tick, and when the next one is due */
    int64_t late_ms;                    /* our own ticks since then, all together */
    int64_t stalled_ms, stall_ended_ms; /* our own last stall; 0: none yet */
    enum liveness_state state;
    bool suspended, host_answers;
    bool excused; /* bytes that waited have been taken for a sign of life */
};

void liveness_init(struct liveness *l, int64_t suspect_ms, int64_t lost_ms, int64_t now_ms);
void liveness_heard(struct liveness *l, int64_t now_ms); /* a whole frame */
/* Is it time to ask whether something waits to be read? */
bool liveness_wants_bytes(const struct liveness *l, int64_t now_ms);
void liveness_bytes_wait(struct liveness *l, int64_t now_ms); /* something does */
void liveness_host_answers(struct liveness *l); /* counts until the peer is heard again */
/* Call it every liveness_next_ms(). Returns the new state. */
enum liveness_state liveness_tick(struct liveness *l, int64_t now_ms);
/* Until the next tick is due: a period, or less when the state may change before. */
int64_t liveness_next_ms(const struct liveness *l, int64_t now_ms);
/* The silence after which the peer is lost, as things are. */
int64_t liveness_limit_ms(const struct liveness *l);
void liveness_suspend(struct liveness *l, bool suspended, int64_t now_ms);
/* The length of the stall of our own that explains what happens now; 0: there is none. Either no
 * tick has noticed it yet, or it ended less than the time of suspicion ago. */
int64_t liveness_stall_ms(const struct liveness *l, int64_t now_ms);
/* As the clock has it, our own lateness included. */
int64_t liveness_silence_ms(const struct liveness *l, int64_t now_ms);

/*
 * The offset of another machine's monotonic clock from ours, estimated from round trips: we ask at
 * `sent`, it reads its clock in between, its answer arrives at `received`. Nanoseconds.
 *
 * The best sample is that of the fastest round trip: its error is at most half of that. But clocks
 * also run at different speeds, and after days a sample of the first hour is useless. So a sample's
 * error grows by CLOCK_DRIFT_PPM of its age. A later sample replaces it once the later one's error
 * is smaller.
 */

#define CLOCK_DRIFT_PPM 100 /* two crystals of 50 ppm each, undisciplined */
#define CLOCK_UNKNOWN (INT64_MAX / 4)

struct clock_offset {
    bool measured;       /* a new one, all zero, is unknown */
    int64_t offset_ns;   /* theirs minus ours */
    int64_t error_ns;    /* of that, when it was measured */
    int64_t measured_ns; /* on our clock */
};

/* Ignores impossible samples (received before sent, times that no clock shows). */
void clock_offset_sample(struct clock_offset *clock, int64_t sent_ns, int64_t theirs_ns,
                         int64_t received_ns);
/* Results and their differences do not overflow, whatever the other side sent. */
int64_t clock_offset_to_ours(const struct clock_offset *clock, int64_t theirs_ns);
/* CLOCK_UNKNOWN: it was never measured. */
int64_t clock_offset_error(const struct clock_offset *clock, int64_t now_ns);
