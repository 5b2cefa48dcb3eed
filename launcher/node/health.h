/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of this machine for `hvdrun check` only: space and rights of the folders that a job needs,
 * the system, InfiniBand adapters, the GPU driver, our entry in /etc/hosts. It reads files and asks
 * file systems, which can hang. It asks no other machine.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

struct health_folder {
    const char *what; /* static: "tmp", "shm" */
    char *path;
    uint64_t free_bytes, total_bytes; /* for us; 0 when it cannot be asked */
    bool noexec;
    char *problem; /* no runtime folder can be made there; NULL */
};

#define HEALTH_FOLDERS 2

struct health {
    struct health_folder folders[HEALTH_FOLDERS];
    char *system;         /* PRETTY_NAME of os-release; "" */
    struct strv gpus;     /* "NVIDIA A100-SXM4-40GB (0000:17:00.0)", in the order of gpus.h */
    char *gpu_driver;     /* "NVIDIA 535.104.05"; "" without one */
    struct strv adapters; /* "mlx5_0:1 ACTIVE 100 Gb/sec (4X EDR)" for each port */
    char *own_address;    /* 127.x.x.x that hosts gives to `hostname`; "" */
};

/* `root` is put in front of /etc, /proc and /sys: "" except in tests. Never fails. */
void health_read(const char *root, const char *hostname, struct health *out);
void health_clear(struct health *health); /* frees what it points to */

/* Version of the hwloc that comes with this module ("2.9"), the caller's; NULL and the error: it
 * cannot be loaded. */
char *health_hwloc(const char *module, struct error *err);
