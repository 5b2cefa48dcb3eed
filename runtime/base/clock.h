/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Deadlines and intervals use the monotonic clock. The wall clock is only for people. */
#pragma once

#include <stdint.h>

int64_t clock_mono_ns(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_ns(void); /* since 1970-01-01 UTC */
