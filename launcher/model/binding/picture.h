/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of --report-bindings about a node: a line on the machine, one on each GPU, and one on
 * each worker with its CPUs, its GPUs and a picture. Pure.
 *
 * The picture has one letter for each core: B bound, b bound to some of its CPUs, . free for us, x
 * not ours. `/` separates the level 3 caches of a memory node. `|` separates the memory nodes of a
 * package. Brackets surround each package: [BB..|....][....|..xx]. On machines of more than 96
 * cores, a number counts equal letters in a row, as in [32B 32.][64.].
 */
#pragma once

#include "base/buf.h"
#include "base/strv.h"
#include "model/binding/binding.h"

/* One worker of the picture; borrowed. */
struct binding_worker {
    unsigned rank;
    const struct cpu_mask *mask;
    const char *gpus; /* those that it has or is near, "0" or "2,3"; NULL: none */
};

/* Appends lines to `out`; `gpus` are those that the workers see, `unit` says what they are bound
 * to. */
void binding_report(const struct topology *topology, const struct device_list *gpus,
                    const char *unit, const struct binding_worker *workers, size_t count,
                    struct strv *out);

/* Appends the picture of one mask; -1 when `out` is full. */
int binding_picture(const struct topology *topology, const struct cpu_mask *mask, struct buf *out);
