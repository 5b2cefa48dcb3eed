/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine that its processes can open, without CUDA, ROCm or a child process.
 *
 * NVIDIA: what the driver shows below /proc/driver/nvidia/gpus, or else the devices to which it is
 * bound below /sys/bus/pci/drivers/nvidia; of these only those whose /dev/nvidiaN we may open,
 * which leaves what a container or the devices cgroup of a scheduler gives us. Where neither is
 * shown, the /dev/nvidiaN alone, without a place. AMD: the nodes of the kernel's compute driver
 * (/sys/class/kfd) whose render device we may open; asked only where there is no NVIDIA GPU.
 *
 * A GPU in MIG mode counts once.
 */
#pragma once

#include "model/binding/device.h"

/* `root` stands in front of /proc, /sys and /dev: "" but for tests. Places are not filled in. */
void gpus_list(const char *root, struct device_list *out);

/* gpus_list() with the place of each. */
void gpus_read(const char *root, struct device_list *out);

/* `count` NVIDIA GPUs of which nothing else is known. */
void gpus_fill_unknown(struct device_list *out, int count);

/* How many of `gpus` this process sees: CUDA_VISIBLE_DEVICES (or ROCR_VISIBLE_DEVICES) of its
 * environment counts. */
int gpus_seen(const struct device_list *gpus);

/* gpus_seen() of gpus_list(); a few system calls where there is none. */
int gpus_count(const char *root);
