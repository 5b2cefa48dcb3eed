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
 * A GPU in MIG mode counts once. At the end there are the InfiniBand and RoCE adapters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/program.h"
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

/*
 * Asks `nvidia-smi -L` how many GPUs there are. This is the last resort, for a host that has a
 * driver although gpus_list() finds no GPU. The sign of a driver is its control device, or that of
 * WSL, where no file lists GPUs. The program can be slow and, with a broken driver, hang. So the
 * loop goes on meanwhile, and at the time limit the program is killed and the answer is 0.
 */
#define GPUS_ASK_LIMIT_MS 3000

/* The path of the program; NULL when there is no driver, or no such program. The caller frees it.
 * `root`: "" except in tests. `search`: a PATH value; WSL's folder is searched after it. */
char *gpus_ask_program(const char *root, const char *search);

/* As program_start(). */
struct program *gpus_ask(struct loop *loop, struct helpers *helpers, const char *program,
                         int64_t limit_ms,
                         void (*done)(void *context, const struct program_result *result),
                         void *context);
int gpus_answered(const struct program_result *result); /* 0 too, if it has failed */

/* The adapters whose ports are active, from `root`/sys/class/infiniband, with their places. */
void nics_read(const char *root, struct device_list *out);

/* A number of at most six digits in a small file; `missing` when there is none. */
int pci_read_number(const char *path, int missing);
