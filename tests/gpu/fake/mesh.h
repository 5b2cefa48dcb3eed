/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a fake communicator: Unix sockets between all pairs of ranks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mesh {
    int rank, size;
    int *fds; /* to each rank; -1: the own one, or not connected */
    atomic_bool stop;
};

struct mesh *mesh_new(int rank, int size);
void mesh_free(struct mesh *mesh);

/* Waits for all ranks. False: `stop` was set. */
bool mesh_connect(struct mesh *mesh, const char *id);

/* What goes to a rank, and what comes from it. */
struct mesh_part {
    const char *out;
    size_t out_bytes;
    char *in;
    size_t in_bytes;
};

/* Moves `parts`, one for each rank, but for the own one. If a rank has gone, it waits for `stop`.
 * False: `stop` was set. */
bool mesh_exchange(struct mesh *mesh, struct mesh_part *parts);
