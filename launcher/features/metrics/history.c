/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics.h"

#include <stddef.h>

const struct history_point *history_point(const struct history *history, uint64_t number)
{
    bool known = number >= history->first && number < history->next;
    return known ? &history->points[number % HISTORY_POINTS] : NULL;
}

/* NULL: there is none. */
static const struct history_point *last_point(const struct history *history)
{
    return history->next == 0 ? NULL : history_point(history, history->next - 1);
}

static void forget_old(struct history *history, int64_t now_ms)
{
    while (history->first < history->next &&
           (history->next - history->first >= HISTORY_POINTS ||
            now_ms - history_point(history, history->first)->when_ms > HISTORY_SPAN_MS))
        history->first++;
}

void history_add(struct history *history, const struct history_point *point)
{
    const struct history_point *last = last_point(history);
    if (last != NULL && point->when_ms <= last->when_ms)
        return;
    bool after_gap = last != NULL && point->when_ms - last->when_ms > HISTORY_GAP_MS;
    if (last == NULL)
        history->begun_ms = point->when_ms;
    forget_old(history, point->when_ms);
    struct history_point *place = &history->points[history->next++ % HISTORY_POINTS];
    *place = *point;
    place->after_gap = after_gap;
}

int64_t history_wait_ms(const struct history *history)
{
    const struct history_point *last = last_point(history);
    bool dense = last == NULL || last->when_ms - history->begun_ms < HISTORY_DENSE_SPAN_MS;
    return dense ? HISTORY_DENSE_MS : HISTORY_PERIOD_MS;
}
