/* SPDX-License-Identifier: Apache-2.0 */
/* Names for numbers of NVIDIA's library (node/nvml.h). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(bit, name, is it an alarm?): why the clocks of a GPU are lower than they could be. A GPU that
 * works hard is at its power cap, so that is none. */
#define CLOCK_REASON_LIST(X)                       \
    X(0x1, "idle", false)                          \
    X(0x2, "application clocks", false)            \
    X(0x4, "software power cap", false)            \
    X(0x8, "hardware slowdown", true)              \
    X(0x10, "sync boost", false)                   \
    X(0x20, "software thermal slowdown", true)     \
    X(0x40, "hardware thermal slowdown", true)     \
    X(0x80, "hardware power brake slowdown", true) \
    X(0x100, "display clocks", false)

/* One after the other, from number 0. NULL: there are no more. */
const char *clock_reason_name(int number);
uint64_t clock_reason_bit(int number);
bool clock_reason_is_alarm(const char *name);

/* "is lost", "needs a reset"; NULL: none is known */
const char *gpu_trouble_text(int result);
