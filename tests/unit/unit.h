/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a room's unit tests: `unit_ROOM NOUN` runs those of one noun. The `main` of each
 * test_NOUN.c is a function of this program, under another name that the build gives it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From now on, the code under test reads these times, until the next call. A test whose result
 * depends on an age sets it: a machine may have booted a moment ago. Modules and other programs
 * read the machine's clocks. */
void unit_clock_stop(int64_t mono_ns, int64_t wall_ns);
void unit_clock_run(void); /* the machine's again */

/* The machine's clock in so much time from now: when a test gives up, or code under test that waits
 * in earnest. */
int64_t unit_limit_ms(int64_t ms);
int64_t unit_limit_ns(int64_t ns);
bool unit_is_over(int64_t limit_ms);

/* A moment, in a loop that waits for something that another process or the kernel does. */
void unit_pause(void);

/* What any other command line runs: the room's own helper process, or an experiment by hand. At
 * most one file of a room defines it; without one such a call is wrong usage. */
int unit_called_otherwise(int argc, char **argv);
