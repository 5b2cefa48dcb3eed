/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/flow.h"

void credit_init(struct credit *credit, struct credit_budget *budget, uint64_t nodes)
{
    uint64_t share = budget->total / (nodes > 0 ? nodes : 1);
    uint64_t window = share < CREDIT_WINDOW_START ? share : CREDIT_WINDOW_START;
    if (window < CREDIT_WINDOW_MIN)
        window = CREDIT_WINDOW_MIN;
    *credit = (struct credit){.budget = budget, .window = window, .granted = window};
    budget->handed_out += window;
}

void credit_release(struct credit *credit)
{
    if (credit->budget != NULL)
        credit->budget->handed_out -= credit->window;
    *credit = (struct credit){.budget = NULL};
}

bool credit_received(struct credit *credit, uint64_t bytes)
{
    credit->received += bytes;
    /* A sender checks its credit before it reads a chunk, so it may overrun by one chunk. */
    return credit->received <= credit->granted + CREDIT_WINDOW_MIN;
}

bool credit_consumed(struct credit *credit, uint64_t bytes, bool waited)
{
    struct credit_budget *budget = credit->budget;
    credit->consumed += bytes;
    /* The sender's last chunk may have gone beyond the grant, so no difference is taken here. */
    if (budget == NULL || credit->granted > credit->consumed + credit->window / 2)
        return false;
    bool used_up = credit->granted <= credit->received + credit->window / 4;
    if (used_up && !waited && budget->handed_out + credit->window <= budget->total) {
        budget->handed_out += credit->window;
        credit->window *= 2;
    }
    credit->granted = credit->consumed + credit->window;
    return true;
}

void hold_passed(struct line_hold *hold, size_t bytes, int64_t now_ms)
{
    if (now_ms - hold->counted_ms >= HOLD_MS) {
        hold->counted_ms = now_ms;
        hold->counted = 0;
    }
    hold->counted += bytes;
    if (hold->counted >= HOLD_BUSY_BYTES)
        hold->busy_ms = now_ms;
}

void hold_blocked(struct line_hold *hold, int64_t now_ms)
{
    hold->busy_ms = now_ms;
}

void hold_woke(struct line_hold *hold, int64_t due_ms, int64_t now_ms)
{
    if (now_ms - due_ms > HOLD_LATE_MS)
        hold->busy_ms = now_ms;
}

int64_t hold_due_ms(const struct line_hold *hold, int64_t since_ms)
{
    int64_t begin = hold->busy_ms > since_ms ? hold->busy_ms : since_ms;
    int64_t due = begin + HOLD_MS, latest = since_ms + HOLD_MOST_MS;
    return due < latest ? due : latest;
}
