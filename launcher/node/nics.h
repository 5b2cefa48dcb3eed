/* SPDX-License-Identifier: Apache-2.0 */
/* InfiniBand and RoCE adapters of this machine: the ports that are active. */
#pragma once

#include "model/binding/topology.h"

/* From `root`/sys/class/infiniband; `root`: "" except in tests. */
void nics_read(const char *root, struct device_list *out);
