/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far another machine's monotonic clock is from ours, estimated from round trips: we ask at
 * `sent`, it reads its clock in between, the answer is here at `received`. Pure; nanoseconds.
 *
 * The best sample is that of the fastest round trip: it is wrong by at most half of it. But clocks
 * also run at different speeds, and in a run of days a sample from the first hour is worth nothing:
 * so a sample's error grows by CLOCK_DRIFT_PPM of its age, and a later one takes its place as soon
 * as that one's is smaller.
 */
#pragma once

#include <stdint.h>

#define CLOCK_DRIFT_PPM 100 /* two crystals of 50 ppm each, undisciplined */
#define CLOCK_UNKNOWN (INT64_MAX / 4)

struct clock_offset {
    int64_t offset_ns;   /* theirs minus ours */
    int64_t error_ns;    /* of that, when it was measured; CLOCK_UNKNOWN: never */
    int64_t measured_ns; /* on our clock */
};

void clock_offset_init(struct clock_offset *clock);
/* Samples that cannot be (received before sent, times that no clock shows) are ignored. */
void clock_offset_sample(struct clock_offset *clock, int64_t sent_ns, int64_t theirs_ns,
                         int64_t received_ns);
/* Whatever the other side says: results and their differences do not overflow. */
int64_t clock_offset_to_ours(const struct clock_offset *clock, int64_t theirs_ns);
int64_t clock_offset_error(const struct clock_offset *clock, int64_t now_ns);
