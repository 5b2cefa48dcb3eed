/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of binding alone. */
#pragma once

#include "base/error.h"
#include "model/binding/binding.h"
#include "model/binding/topology.h"

/* Adds to `mask` those CPUs of these cores that we may use. Returns -1 and STATUS_USAGE when the
 * text is wrong, or a core does not exist or is not ours. */
int binding_cpus_parse(const char *text, const struct topology *topology, struct cpu_mask *mask,
                       struct error *err);
