/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: what one rank says about an operation that it has submitted.
 *
 * Requests meet by their key. That is 't' and the name of the tensor, or one letter for a request
 * without a name, such as a barrier. Two requests agree if the operation can run with both. The
 * checks have the order of Horovod: type, kind, shape, scales, reduction, root, memory. The first
 * that fails is reported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "core/codec.h"
#include "include/hvd.h"

/* X(name, text, letter of the key). The letter 't' means that the name follows. */
#define KIND_LIST(X)                            \
    X(KIND_ALLREDUCE, "allreduce", 't')         \
    X(KIND_ALLGATHER, "allgather", 't')         \
    X(KIND_BROADCAST, "broadcast", 't')         \
    X(KIND_ALLTOALL, "alltoall", 't')           \
    X(KIND_REDUCESCATTER, "reducescatter", 't') \
    X(KIND_BARRIER, "barrier", 'b')             \
    X(KIND_JOIN, "join", 'j')                   \
    X(KIND_ADD_SET, "add_process_set", 'a')     \
    X(KIND_REMOVE_SET, "remove_process_set", 'r')

#define KIND_ENUM(name, text, letter) name,
enum kind { KIND_LIST(KIND_ENUM) KINDS };
#undef KIND_ENUM

struct request {
    char *key; /* owned */
    enum kind kind;
    enum hvd_type type;
    enum hvd_op op;
    double prescale, postscale;
    int32_t priority; /* ranks may differ: the highest counts */
    int32_t root;     /* broadcast: global rank; KIND_REMOVE_SET: number of the set */
    bool on_gpu;      /* the tensor is in the memory of a GPU */
    int32_t dims;
    int64_t *shape; /* owned; KIND_ADD_SET: the global ranks of the set, ascending */
};

#define AUTO_REQUEST __attribute__((cleanup(request_destroy)))

const char *kind_text(enum kind kind);

/* `name` is used if the kind has one. The caller frees it. */
char *request_key(enum kind kind, const char *name);

/* With its key, and as it is without a tensor. */
struct request request_bare(enum kind kind, const char *name);

void request_destroy(struct request *request);
struct request request_copy(const struct request *request);

/* For people: the name of the tensor, or the kind. Borrowed. */
const char *request_name(const struct request *request);

size_t request_elements(const struct request *request); /* SIZE_MAX: more than memory can have */
size_t request_bytes(const struct request *request);
/* What it takes in the fusion buffer of a set of `size` ranks, as far as one rank knows. In an
 * allgather, the others may bring more or fewer rows. */
size_t request_fused_bytes(const struct request *request, int size);

/* The elements of a set rank's part of a reducescatter among `size` ranks: the first ranks get one
 * row more. */
struct slice {
    size_t first, count;
};
struct slice request_slice(const struct request *request, int rank, int size);

/* Whether the operation moves data of a tensor. */
bool request_has_tensor(const struct request *request);

/* Whether two operations may be one. Reductions need the same type, operation and scales, and
 * broadcasts the same root. What only moves bytes may have different types. */
bool request_fuses(const struct request *a, const struct request *b);

/* NULL: they agree. Otherwise what differs, such as "types"; static. */
const char *request_difference(const struct request *a, const struct request *b);

/* Appends the value of `request` in `difference`, such as "float32". */
void request_describe(const struct request *request, const char *difference, struct buf *out);

void request_write(const struct request *request, struct buf *out);
/* -1: the reader is bad, and `out` is empty. A shape from elsewhere has at most `dims_max` entries
 * if it is a list of ranks, and HVD_DIMS_MAX otherwise. */
int request_read(struct reader *in, size_t dims_max, struct request *out);

/*
 * Which tensors run as one operation: those that request_fuses() allows, as long as they take at
 * most `threshold` bytes of the fusion buffer. A tensor that takes more than FUSION_ALONE bytes
 * runs alone. Copying it into the fusion buffer and out again costs more than an operation of its
 * own. Groups begin in the order of their first tensors, so a small tensor does not wait behind
 * others for long.
 */
enum { FUSION_ALONE = 2 << 20 };

/* Writes the number of its group, from 0, for each of the `count` requests of a set of `size`
 * ranks. Returns the number of groups. */
size_t fusion_groups(const struct request *const *requests, size_t count, int size,
                     size_t threshold, size_t *groups);

/* Factors with which operations multiply. They are compared by their bits: all ranks must multiply
 * with the same one, and a NaN counts. */

static inline bool factor_equals(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Whether a product with the factor changes nothing. A NaN is not a one. */
static inline bool factor_is_one(double factor)
{
    return factor_equals(factor, 1);
}
