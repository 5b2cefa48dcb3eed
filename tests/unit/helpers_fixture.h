/* SPDX-License-Identifier: Apache-2.0 */
/* A loop on which helper programs run and are reaped, as in a driver. Included behind cmocka.h. */
#pragma once

#include <signal.h>

#include "io/helpers.h"
#include "io/reaper.h"
#include "loop_fixture.h"
#include "unit.h"

struct helper_loop {
    struct loop *loop;
    struct loop_signals *signals;
    struct reaper *reaper;
    struct helpers *helpers;
};

static inline void helper_loop_exit(void *context, const struct reaper_exit *exit)
{
    const struct helper_loop *own = context;
    helpers_exited(own->helpers, exit);
}

static inline void helper_loop_signal(void *context, int signal, int sender)
{
    const struct helper_loop *own = context;
    (void)signal, (void)sender;
    reaper_collect(own->reaper);
}

static inline void helper_loop_open(struct helper_loop *own)
{
    static const int signals[] = {SIGCHLD, 0};
    own->loop = loop_create(NULL);
    own->helpers = helpers_create();
    own->reaper = reaper_create(helper_loop_exit, own);
    own->signals = loop_signals_create(own->loop, signals, helper_loop_signal, own, NULL);
    assert_non_null(own->signals);
}

/* All that was started is gone, at the latest after a while. */
static inline void helper_loop_expect_idle(struct helper_loop *own)
{
    reaper_collect(own->reaper);
    run_until(own->loop, !reaper_has_children());
}

static inline void helper_loop_close(struct helper_loop *own)
{
    loop_signals_destroy(own->signals);
    reaper_destroy(own->reaper);
    helpers_destroy(own->helpers);
    loop_destroy(own->loop);
}
