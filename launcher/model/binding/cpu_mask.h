/* SPDX-License-Identifier: Apache-2.0 */
/* A set of CPUs, of any size, as sched_setaffinity(2) takes it. Pure. All zero is the empty set. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define CPU_NUMBER_MAX 65535 /* of one CPU; the kernel's own limit is 8192 */

/* For sched_setaffinity(pid, bytes, (cpu_set_t *)words). */
struct cpu_mask {
    unsigned long *words;
    size_t bytes;
};

void cpu_mask_clear(struct cpu_mask *mask);        /* frees; the empty set afterwards */
void cpu_mask_set(struct cpu_mask *mask, int cpu); /* other numbers than 0..MAX are ignored */
bool cpu_mask_has(const struct cpu_mask *mask, int cpu);
int cpu_mask_count(const struct cpu_mask *mask);

/* Sets the CPUs of a list as the kernel writes them, 0-3,8; stops at anything else. */
void cpu_mask_set_list(struct cpu_mask *mask, const char *list);
/* Appends the CPUs as such a list; -1 when `out` is full. */
int cpu_mask_list(const struct cpu_mask *mask, struct buf *out);
