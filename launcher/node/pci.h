/* SPDX-License-Identifier: Apache-2.0 */
/* PCI devices from /sys: where they are, and the InfiniBand and RoCE adapters of this machine. */
#pragma once

#include "model/binding/topology.h"

/* Fills path, numa and cpus of a device whose PCI address is known; what /sys does not
 * have stays unknown. `root`: "" except in tests. */
void pci_locate(const char *root, struct device *device);

/* A number of at most six digits in a small file; `missing` when there is none. */
int pci_read_number(const char *path, int missing);

/* The adapters whose ports are active, from `root`/sys/class/infiniband. */
void nics_read(const char *root, struct device_list *out);
