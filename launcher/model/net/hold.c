/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/hold.h"

void hold_passed(struct hold *hold, size_t bytes, int64_t now_ms)
{
    if (now_ms - hold->counted_ms >= HOLD_MS) {
        hold->counted_ms = now_ms;
        hold->counted = 0;
    }
    hold->counted += bytes;
    if (hold->counted >= HOLD_BUSY_BYTES)
        hold->busy_ms = now_ms;
}

void hold_blocked(struct hold *hold, int64_t now_ms)
{
    hold->busy_ms = now_ms;
}

void hold_woke(struct hold *hold, int64_t due_ms, int64_t now_ms)
{
    if (now_ms - due_ms > HOLD_LATE_MS)
        hold->busy_ms = now_ms;
}

int64_t hold_due_ms(const struct hold *hold, int64_t since_ms)
{
    int64_t begin = hold->busy_ms > since_ms ? hold->busy_ms : since_ms;
    int64_t due = begin + HOLD_MS, latest = since_ms + HOLD_MOST_MS;
    return due < latest ? due : latest;
}
