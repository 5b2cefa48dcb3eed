/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/elements.h"
#include "engine/nccl/libraries.h"

static const enum hvd_type types[] = {HVD_INT8,    HVD_UINT8,   HVD_INT32,   HVD_UINT32,
                                      HVD_INT64,   HVD_UINT64,  HVD_FLOAT16, HVD_FLOAT32,
                                      HVD_FLOAT64, HVD_BFLOAT16};

size_t kernel_type_bytes(int type)
{
    return hvd_type_bytes((int)types[type]);
}

static enum hvd_op op_of(int op)
{
    static const enum hvd_op ops[] = {HVD_SUM, HVD_PRODUCT, HVD_MAX, HVD_MIN, HVD_SUM};
    return op <= NCCL_AVERAGE ? ops[op] : HVD_SUM;
}

#define DIVIDE(type, size)             \
    for (size_t i = 0; i < count; i++) \
        ((type *)data)[i] = (type)(((type *)data)[i] / (type)(size));
static void divide(int type, void *data, size_t count, int size)
{
    switch (type) {
    case NCCL_INT8: DIVIDE(int8_t, size); break;
    case NCCL_UINT8: DIVIDE(uint8_t, size); break;
    case NCCL_INT32: DIVIDE(int32_t, size); break;
    case NCCL_UINT32: DIVIDE(uint32_t, size); break;
    case NCCL_INT64: DIVIDE(int64_t, size); break;
    case NCCL_UINT64: DIVIDE(uint64_t, size); break;
    default: scale_copy(types[type], data, data, count, 1.0 / size);
    }
}

/* The inputs of all ranks, back to back, scaled. */
static char *collect(struct mesh *mesh, const struct kernel *kernel, size_t count)
{
    size_t bytes = count * kernel_type_bytes(kernel->type);
    char *all = mem_alloc((size_t)mesh->size * bytes + 1);
    struct mesh_part *parts AUTO_FREE = mem_array((size_t)mesh->size, sizeof *parts);
    char *own AUTO_FREE = mem_alloc(bytes + 1);
    memcpy(own, kernel->in, bytes);
    if (kernel->scalar.used)
        scale_copy(types[kernel->type], own, own, count, kernel->scalar.value);
    for (int i = 0; i < mesh->size; i++)
        parts[i] = (struct mesh_part){own, bytes, all + (size_t)i * bytes, bytes};
    memcpy(all + (size_t)mesh->rank * bytes, own, bytes);
    mesh_exchange(mesh, parts);
    return all;
}

/* Reduces the elements first to first + count of all inputs. */
static void reduce(const struct mesh *mesh, const struct kernel *kernel, char *all, size_t stride,
                   size_t first, size_t count)
{
    reduce_function *function = reduce_find(types[kernel->type], op_of(kernel->op));
    size_t bytes = kernel_type_bytes(kernel->type);
    char *to = all + first * bytes;
    for (int i = 1; i < mesh->size; i++)
        function(to, to, all + ((size_t)i * stride + first) * bytes, count);
    if (kernel->op == NCCL_AVERAGE)
        divide(kernel->type, to, count, mesh->size);
    memcpy(kernel->out, to, count * bytes);
}

static void broadcast(struct mesh *mesh, const struct kernel *kernel)
{
    size_t bytes = kernel->count * kernel_type_bytes(kernel->type);
    struct mesh_part *parts AUTO_FREE = mem_array((size_t)mesh->size, sizeof *parts);
    bool is_root = mesh->rank == kernel->root;
    for (int i = 0; i < mesh->size && is_root; i++)
        parts[i] = (struct mesh_part){kernel->in, bytes, NULL, 0};
    if (!is_root)
        parts[kernel->root] = (struct mesh_part){NULL, 0, kernel->out, bytes};
    else if (kernel->out != kernel->in)
        memcpy(kernel->out, kernel->in, bytes);
    mesh_exchange(mesh, parts);
}

static void to_all(struct mesh *mesh, const struct kernel *kernel)
{
    struct mesh_part *own = &kernel->parts[mesh->rank];
    if (own->in_bytes > 0)
        memcpy(own->in, own->out, own->in_bytes);
    mesh_exchange(mesh, kernel->parts);
}

/* How many elements the product with a scalar reaches in a communicator of one rank: NCCL (as of
 * 2.28) gives each of its blocks equally many, and forgets those that are left over. */
static size_t reached(const struct kernel *kernel)
{
    enum { BLOCK_BYTES = 16384, BLOCKS = 32, PACK_BYTES = 16 };
    size_t bytes = kernel_type_bytes(kernel->type), pack = PACK_BYTES / bytes;
    size_t blocks = (kernel->count * bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
    if (blocks == 0)
        return 0;
    blocks = blocks > BLOCKS ? BLOCKS : blocks;
    size_t part = (kernel->count / blocks + pack - 1) / pack * pack;
    return part * blocks < kernel->count ? part * blocks : kernel->count;
}

void kernel_run(struct mesh *mesh, const struct kernel *given)
{
    size_t size = (size_t)mesh->size;
    struct kernel copy = *given, *kernel = &copy;
    if (mesh->size == 1 && (kernel->scalar.used || kernel->op == NCCL_AVERAGE))
        kernel->count = reached(kernel);
    if (kernel->kind == BROADCAST) {
        broadcast(mesh, kernel);
        return;
    }
    if (kernel->kind == TO_ALL) {
        to_all(mesh, kernel);
        return;
    }
    size_t count = kernel->kind == REDUCE_SCATTER ? kernel->count * size : kernel->count;
    char *all AUTO_FREE = collect(mesh, kernel, count);
    if (atomic_load(&mesh->stop))
        return;
    if (kernel->kind == ALL_GATHER)
        memcpy(kernel->out, all, size * count * kernel_type_bytes(kernel->type));
    else if (kernel->kind == REDUCE_SCATTER)
        reduce(mesh, kernel, all, count, (size_t)mesh->rank * kernel->count, kernel->count);
    else if (kernel->kind == ALL_REDUCE || mesh->rank == kernel->root)
        reduce(mesh, kernel, all, count, 0, count);
}
