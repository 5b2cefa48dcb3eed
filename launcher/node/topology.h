/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPUs of this machine as model/binding wants them; its devices come from gpus.h and nics.h.
 * Only of a made-up machine (topology.made_up) they are in the description, too.
 *
 * hwloc knows most, but linking it costs every job start-up time, so it lives in a module of ours
 * that is only opened when --bind-to or --report-bindings asks. Without the module the kernel's own
 * files are read, which is enough for the units that we bind to.
 */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"

/* `module`: full path of hvdrun-topology.so; NULL, or when it cannot be opened: the kernel's files.
 * Fills `out`, which the caller destroys. -1 when neither way works. */
int topology_read(const char *module, struct topology *out, struct error *err);

/* From hwloc; an error when the module cannot be opened or hwloc fails. */
int topology_read_module(const char *module, struct topology *out, struct error *err);

/* From `root`/devices/system/{cpu,node}; `root` is "/sys" but for tests. */
int topology_read_sysfs(const char *root, struct topology *out, struct error *err);
