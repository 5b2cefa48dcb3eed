/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPUs that a rankfile gives to a rank, as Open MPI writes them: cores by their logical numbers
 * (counted over the whole machine, in the order of packages and memory nodes, also those that are
 * not ours), `0-3,8`; or by package and number in it, `1:0-2`, where what follows a comma stays in
 * the package; `*` is all of them. `;` divides as `,` does. Pure.
 */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"

/* Adds the CPUs of these cores that we may use to `mask`. -1 and STATUS_USAGE when the text is none
 * or a core does not exist or is not ours. */
int binding_cpus_parse(const char *text, const struct topology *topology, struct cpu_mask *mask,
                       struct error *err);
