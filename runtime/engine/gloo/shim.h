/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gloo behind an interface in C. Only the files in C++ here include Gloo's headers.
 *
 * A device is a network interface with one thread of Gloo. A mesh is one TCP connection to each
 * other rank of a process set. Meshes are independent of each other. One thread at a time uses a
 * mesh, except for mesh_wake().
 *
 * Functions return HVD_OK, or HVD_ERR_PEER_LOST (a connection ended, a wait was too long, or
 * mesh_wake() was called), or HVD_ERR_ENGINE. No exception leaves them. After a failure the mesh is
 * closed: the other ranks see the end of their connections, and each later call fails too.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/error.h"
#include "include/hvd.h"

struct device;
struct mesh;

/* `interface` NULL: the one to which this host's name resolves. */
enum hvd_status device_create(const char *interface, struct device **device, struct error *err);
void device_destroy(struct device *device); /* its meshes may live on; accepts NULL */

/* Begins to listen for the other ranks. `timeout_ms` is for a connection, and for each wait inside
 * of the operations. */
enum hvd_status mesh_create(struct device *device, int rank, int size, int64_t timeout_ms,
                            struct mesh **mesh, struct error *err);
/* Closes the connections; bytes that were sent still arrive. Accepts NULL. */
void mesh_destroy(struct mesh *mesh);
/* From any thread: each call that waits, and each later call, fails with HVD_ERR_PEER_LOST. */
void mesh_wake(struct mesh *mesh);

/* The addresses at which this rank listens for its peers: `size` parts of equal length, one for
 * each rank. The own part is unused. Borrowed until the mesh is destroyed. */
const void *mesh_addresses(const struct mesh *mesh, size_t *length);
/* Connects to `peer`, whose addresses these are. Each rank connects to its peers in the order of
 * their ranks. */
enum hvd_status mesh_connect(struct mesh *mesh, int peer, const void *addresses, size_t length,
                             struct error *err);

typedef void mesh_reduce(void *out, const void *a, const void *b, size_t count);

/* Operations. All buffers may be NULL if they have no bytes. */
enum hvd_status mesh_allreduce(struct mesh *mesh, void *data, size_t count, size_t element_bytes,
                               mesh_reduce *reduce, struct error *err);
enum hvd_status mesh_allgatherv(struct mesh *mesh, const void *in, void *out, const size_t *bytes,
                                struct error *err);
enum hvd_status mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root,
                               struct error *err);
enum hvd_status mesh_alltoallv(struct mesh *mesh, const void *in, const size_t *send_bytes,
                               void *out, const size_t *receive_bytes, struct error *err);
enum hvd_status mesh_barrier(struct mesh *mesh, struct error *err);

#ifdef __cplusplus
}
#endif
