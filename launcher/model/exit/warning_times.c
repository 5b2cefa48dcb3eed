/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/warning_times.h"

#define RESERVE_MAX_MS 15000 /* of TERM and the rest */
#define TERM_MAX_MS 5000

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

struct warning_times warning_times_share(int64_t left_ms, int64_t grace_ms)
{
    int64_t term = grace_ms >= 0 ? least(grace_ms, TERM_MAX_MS) : TERM_MAX_MS;
    if (left_ms == INT64_MAX)
        return (struct warning_times){grace_ms >= 0 ? grace_ms : WARNING_GRACE_MS, term};
    if (left_ms <= 0)
        return (struct warning_times){
            grace_ms >= 0 ? least(grace_ms, WARNING_LATE_MS) : WARNING_LATE_MS, 0};
    int64_t reserve = least(left_ms / 4, RESERVE_MAX_MS);
    return (struct warning_times){left_ms - reserve, least(term, reserve / 3)};
}
