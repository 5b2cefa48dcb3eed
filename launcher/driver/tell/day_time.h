/* SPDX-License-Identifier: Apache-2.0 */
/* The time of day, for people. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DAY_TIME_SIZE ((size_t)16)

/* "14:03:22", in local time. `out` has room for DAY_TIME_SIZE bytes. */
void day_time_text(int64_t wall_ns, char *out);
