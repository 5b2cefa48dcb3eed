/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/clock_offset.h"

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
