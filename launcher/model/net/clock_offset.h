/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offset of another machine's monotonic clock from ours, estimated from round trips: we ask at
 * `sent`, it reads its clock in between, its answer arrives at `received`. Pure; nanoseconds.
 *
 * The best sample is that of the fastest round trip: its error is at most half of that. But clocks
 * also run at different speeds, and after days a sample of the first hour is useless. So a sample's
 * error grows by CLOCK_DRIFT_PPM of its age. A later sample replaces it once the later one's error
 * is smaller.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
