/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Deadlines and intervals use the monotonic one; only people see the other. */
#pragma once

#include <stdint.h>

int64_t clock_mono_ns(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_ns(void); /* since 1970-01-01 UTC */
