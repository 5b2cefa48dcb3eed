/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPUs that a rankfile gives to a rank, in Open MPI's notation. `0-3,8` are cores by their
 * logical numbers. These count over the whole machine, in the order of packages and memory nodes,
 * and also cores that are not ours. `1:0-2` are cores of a package by their number in it; after a
 * comma the package stays the same. `*` is all cores. `;` separates like `,`. Pure.
 */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"

/* Adds to `mask` those CPUs of these cores that we may use. Returns -1 and STATUS_USAGE when the
 * text is wrong, or a core does not exist or is not ours. */
int binding_cpus_parse(const char *text, const struct topology *topology, struct cpu_mask *mask,
                       struct error *err);
