/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that matter to a worker's place: GPUs, and ports of InfiniBand or RoCE adapters. Pure;
 * room node finds them (gpus.h, nics.h).
 */
#pragma once

#include <stddef.h>

#include "model/binding/cpu_mask.h"

enum device_kind { DEVICE_NVIDIA, DEVICE_AMD, DEVICE_NIC };

struct device {
    enum device_kind kind;
    char *name; /* of an adapter, "mlx5_0"; of a GPU its id, "GPU-...", NULL: not known */
    char *pci;  /* "0000:17:00.0"; NULL: not known */
    char *path; /* the bridges above it, then itself: "pci0000:15/0000:15:01.0/0000:16:00.0/...";
                 * NULL: not known */
    int number; /* of an adapter its port, from 1; of an AMD GPU its node in the driver's list, by
                 * which ROCm orders them; else 0 */
    int numa;   /* memory node as the kernel numbers it; -1: not known */
    struct cpu_mask cpus; /* near it; empty: not known */
};

/* All zero is an empty list. GPUs are in the order of their PCI addresses, as nvidia-smi shows
 * them, and CUDA too among equal GPUs. Those of AMD are in the order of their numbers. */
struct device_list {
    struct device *items;
    size_t count;
};

/* Deep; what `to` had is not freed. */
void device_copy(struct device *to, const struct device *from);

/* Takes over what `device` points to. */
void device_list_add(struct device_list *list, const struct device *device);
void device_list_sort(struct device_list *list); /* as above */
void device_list_destroy(struct device_list *list);

/* How many bridges and devices lie between the two; -1 when that is not known, or they have no
 * bridge in common. */
int device_distance(const struct device *one, const struct device *other);
