/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of crew_binding need, and nobody else. */
#pragma once

#include "agent/crew_apps.h"
#include "agent/crew_binding.h"
#include "base/error.h"
#include "model/binding/topology.h"
#include "wire/control.pb-c.h"

/* NULL when PREPARE asks for nothing about GPUs. `told`: how many
 * nvidia-smi counts, for a host where nothing else lists them. `topology`: of a simulated machine,
 * whose devices are taken; else NULL. `prepare` and `apps` are borrowed. */
struct crew_gpus *crew_gpus_create(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                                   int told, struct topology *topology);
void crew_gpus_destroy(struct crew_gpus *gpus); /* accepts NULL */

/* -1 and STATUS_NO_SLOTS when --gpus-per-proc asks for more than there are. */
int crew_gpus_check(const struct crew_gpus *gpus, int slots, struct error *err);

/* Those that the workers see, in their order. Borrowed. */
const struct device_list *crew_gpus_seen(const struct crew_gpus *gpus);

/* The numbers of those that the worker in `slot` has or is near, "2,3"; NULL: none. The caller owns
 * it. `gpus` may be NULL here and below. */
char *crew_gpus_of(const struct crew_gpus *gpus, size_t slot);
