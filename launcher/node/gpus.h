/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine that its processes can open, without CUDA, ROCm or a child process.
 *
 * NVIDIA: the GPUs below /proc/driver/nvidia/gpus, or else the devices of the driver below
 * /sys/bus/pci/drivers/nvidia. Only those count whose /dev/nvidiaN we may open, which is what a
 * container or the devices cgroup of a scheduler gives us. If neither folder exists, the
 * /dev/nvidiaN themselves count, without a place. AMD: the nodes of the kernel's compute driver
 * (/sys/class/kfd) whose render device we may open; only where there is no NVIDIA GPU.
 *
 * A GPU in MIG mode counts once.
 */
#pragma once

#include <stdbool.h>

#include "model/binding/topology.h"

/* `root` is put in front of /proc, /sys and /dev: "" except in tests. Does not fill in places. */
void gpus_list(const char *root, struct device_list *out);

/* gpus_list() with the place of each. */
void gpus_read(const char *root, struct device_list *out);

/* `count` NVIDIA GPUs without any other fact. */
void gpus_fill_unknown(struct device_list *out, int count);

/* How many of `gpus` this process sees, by CUDA_VISIBLE_DEVICES (or ROCR_VISIBLE_DEVICES) of its
 * environment. */
int gpus_seen(const struct device_list *gpus);

/* gpus_seen() of gpus_list(); a few system calls where there is none. */
int gpus_count(const char *root);

/* Is there the control device of NVIDIA's driver, or that of WSL? Then there may be GPUs that
 * gpus_list() does not find. */
bool gpus_have_control(const char *root);
