/* SPDX-License-Identifier: Apache-2.0 */
/* Running a loop in a test: to its loop_stop(), or for some turns; never for ever. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"
#include "unit.h"

#define RUN_LIMIT_MS 200000 /* only what hangs waits so long */

struct run {
    struct loop *loop;
    struct loop_timer *timer;
    int turns;
    bool expired;
};

static inline void run_expired(void *context)
{
    struct run *run = context;
    run->expired = true;
    loop_stop(run->loop);
}

static inline void run_turn(void *context)
{
    struct run *run = context;
    if (run->turns-- > 0)
        loop_timer_set(run->timer, 0);
    else
        loop_stop(run->loop);
}

/* Until somebody calls loop_stop(); the test fails when nobody does. */
static inline void run_loop(struct loop *loop)
{
    struct run run = {.loop = loop};
    run.timer = loop_timer_create(loop, run_expired, &run);
    loop_timer_set(run.timer, RUN_LIMIT_MS);
    loop_run(loop);
    loop_timer_destroy(run.timer);
    assert_false(run.expired);
}

/* So many turns, so that all that is ready by itself has happened. */
static inline void run_turns(struct loop *loop, int turns)
{
    struct run run = {.loop = loop, .turns = turns};
    run.timer = loop_timer_create(loop, run_turn, &run);
    loop_timer_set(run.timer, 0);
    loop_run(loop);
    loop_timer_destroy(run.timer);
}

/* Until the condition is true, by what another process or the kernel does; the test fails when it
 * never is. */
#define run_until(loop, condition)                                                      \
    for (int64_t run_limit = unit_limit_ms(RUN_LIMIT_MS); !(condition); unit_pause()) { \
        assert_false(unit_is_over(run_limit));                                          \
        run_turns(loop, 1);                                                             \
    }
