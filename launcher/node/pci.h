/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a PCI device, from /sys. */
#pragma once

#include "model/binding/topology.h"

/* Fills path, numa and cpus of a device whose PCI address is known; what /sys does not
 * have stays unknown. `root`: "" except in tests. */
void pci_locate(const char *root, struct device *device);

/* A number of at most six digits in a small file; `missing` when there is none. */
int pci_read_number(const char *path, int missing);
