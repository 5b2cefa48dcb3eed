/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of base/clock.c in the programs of the unit tests. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "unit.h"

/* A test stops the clocks while its threads read them. */
static struct {
    atomic_bool stopped;
    _Atomic int64_t mono_ns, wall_ns;
} set;

void unit_clock_stop(int64_t mono_ns, int64_t wall_ns)
{
    set.mono_ns = mono_ns;
    set.wall_ns = wall_ns;
    set.stopped = true;
}

void unit_clock_run(void)
{
    set.stopped = false;
}

static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t unit_limit_ns(int64_t ns)
{
    return read_ns(CLOCK_MONOTONIC) + ns;
}

int64_t unit_limit_ms(int64_t ms)
{
    return unit_limit_ns(ms * 1000000) / 1000000;
}

bool unit_is_over(int64_t limit_ms)
{
    return unit_limit_ms(0) > limit_ms;
}

void unit_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int64_t clock_mono_ns(void)
{
    return set.stopped ? set.mono_ns : read_ns(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

int64_t clock_wall_ns(void)
{
    return set.stopped ? set.wall_ns : read_ns(CLOCK_REALTIME);
}
