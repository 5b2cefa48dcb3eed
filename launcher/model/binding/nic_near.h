/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network adapter nearest to a GPU, for --nic-hints: by the number of PCI bridges between, then
 * by the memory node. GPUs that are equally near to several adapters take turns, so four GPUs and
 * four adapters of a socket use all four. Pure.
 */
#pragma once

#include "base/buf.h"
#include "model/binding/topology.h"

/* NULL: no adapter is known to be near. Borrowed from `nics`. */
const struct device *nic_near(const struct device_list *nics, const struct device_list *gpus,
                              size_t gpu);

/* The values for NCCL ("=mlx5_0:1,mlx5_3:1") and UCX ("mlx5_0:1,mlx5_3:1") of a worker that has
 * `count` GPUs from `first` on, each adapter once; appends nothing without one. */
void nic_near_values(const struct device_list *nics, const struct device_list *gpus, size_t first,
                     size_t count, struct buf *nccl, struct buf *ucx);
