/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPUs of this machine for model/binding; its devices come from gpus.h. Only the
 * description of a simulated machine (topology.simulated) contains devices too.
 *
 * hwloc knows most, but linking it would slow the start of every job. So it is in a module of our
 * own, which is opened only for --bind-to or --report-bindings. Without the module we read the
 * kernel's files, which is enough for the units that we bind to.
 */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"

/* `module`: full path of hvdrun-topology.so; NULL, or when it cannot be opened: the kernel's files.
 * Fills `out`, which the caller destroys. -1 when neither way works. */
int topology_read(const char *module, struct topology *out, struct error *err);

/* From hwloc; an error when the module cannot be opened or hwloc fails. */
int topology_read_module(const char *module, struct topology *out, struct error *err);

/* From `root`/devices/system/{cpu,node}; `root` is "/sys" except in tests. */
int topology_read_sysfs(const char *root, struct topology *out, struct error *err);
