/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define KIND_ROW(name, text, letter) {text, letter},
static const struct {
    const char *text;
    char letter;
} kinds[] = {KIND_LIST(KIND_ROW)};
#undef KIND_ROW

static const char types[] = "types", operations[] = "operations", shapes[] = "shapes",
                  scales[] = "scales", reductions[] = "reductions", roots[] = "roots",
                  ranks[] = "ranks", sets[] = "numbers of the process set",
                  memories[] = "kinds of memory";

const char *kind_text(enum kind kind)
{
    return kinds[kind].text;
}

char *request_key(enum kind kind, const char *name)
{
    const char *text = kinds[kind].letter == 't' ? name : "";
    size_t length = strlen(text) + 1;
    char *key = mem_resize(NULL, 1 + length); /* faster than zeroed memory */
    key[0] = kinds[kind].letter;
    memcpy(key + 1, text, length);
    return key;
}

struct request request_bare(enum kind kind, const char *name)
{
    return (struct request){.key = request_key(kind, name),
                            .kind = kind,
                            .type = HVD_UINT8,
                            .op = HVD_SUM,
                            .prescale = 1,
                            .postscale = 1};
}

void request_destroy(struct request *request)
{
    free(request->key);
    free(request->shape);
    *request = (struct request){0};
}

struct request request_copy(const struct request *request)
{
    struct request copy = *request;
    copy.key = mem_strdup(request->key);
    copy.shape = request->dims == 0
                     ? NULL
                     : mem_dup(request->shape, (size_t)request->dims * sizeof *request->shape);
    return copy;
}

const char *request_name(const struct request *request)
{
    return request_has_tensor(request) ? request->key + 1 : kind_text(request->kind);
}

bool request_has_tensor(const struct request *request)
{
    return kinds[request->kind].letter == 't';
}

/* NULL: it is not an operation. */
static const char *op_text(uint64_t op)
{
    switch (op) {
#define OP_CASE(name, value, text) \
    case name: return text;
        HVD_OP_LIST(OP_CASE)
#undef OP_CASE
    default: return NULL;
    }
}

size_t request_elements(const struct request *request)
{
    size_t elements = 1;
    bool too_many = false;
    if (!request_has_tensor(request))
        return 0;
    for (int32_t i = 0; i < request->dims; i++) {
        if (request->shape[i] == 0)
            return 0;
        too_many =
            __builtin_mul_overflow(elements, (size_t)request->shape[i], &elements) || too_many;
    }
    return too_many ? SIZE_MAX : elements;
}

size_t request_bytes(const struct request *request)
{
    size_t bytes;
    return __builtin_mul_overflow(request_elements(request), hvd_type_bytes((int)request->type),
                                  &bytes)
               ? SIZE_MAX
               : bytes;
}

/* As bits: a NaN agrees with itself. */
static bool same_scales(const struct request *a, const struct request *b)
{
    return factor_equals(a->prescale, b->prescale) && factor_equals(a->postscale, b->postscale);
}

size_t request_fused_bytes(const struct request *request, int size)
{
    size_t bytes = request_bytes(request),
           copies = request->kind == KIND_ALLGATHER ? (size_t)size : 1;
    return __builtin_mul_overflow(bytes, copies, &bytes) ? SIZE_MAX : bytes;
}

struct slice request_slice(const struct request *request, int rank, int size)
{
    size_t rows = (size_t)request->shape[0], among = (size_t)size, at = (size_t)rank;
    size_t row = rows == 0 ? 0 : request_elements(request) / rows, more = rows % among;
    return (struct slice){(rows / among * at + (at < more ? at : more)) * row,
                          (rows / among + (at < more ? 1 : 0)) * row};
}

bool request_fuses(const struct request *a, const struct request *b)
{
    if (a->kind != b->kind || a->on_gpu != b->on_gpu)
        return false;
    switch (a->kind) {
    case KIND_ALLREDUCE:
    case KIND_REDUCESCATTER: return a->type == b->type && a->op == b->op && same_scales(a, b);
    case KIND_ALLGATHER: return true;
    case KIND_BROADCAST: return a->root == b->root;
    default: return false;
    }
}

static bool reduces(enum kind kind)
{
    return kind == KIND_ALLREDUCE || kind == KIND_REDUCESCATTER;
}

/* Ranks may have different first dimensions. */
static bool first_is_free(enum kind kind)
{
    return kind == KIND_ALLGATHER || kind == KIND_ALLTOALL;
}

static bool same_shape(const struct request *a, const struct request *b)
{
    int32_t from = first_is_free(a->kind) ? 1 : 0;
    return a->dims == b->dims &&
           (a->dims <= from || memcmp(a->shape + from, b->shape + from,
                                      (size_t)(a->dims - from) * sizeof *a->shape) == 0);
}

const char *request_difference(const struct request *a, const struct request *b)
{
    if (a->type != b->type)
        return types;
    if (a->kind != b->kind)
        return operations;
    if (!same_shape(a, b))
        return a->kind == KIND_ADD_SET ? ranks : shapes;
    if (reduces(a->kind) && !same_scales(a, b))
        return scales;
    if (reduces(a->kind) && a->op != b->op)
        return reductions;
    if (a->root != b->root)
        return a->kind == KIND_REMOVE_SET ? sets : roots;
    return a->on_gpu != b->on_gpu ? memories : NULL;
}

void request_describe(const struct request *request, const char *difference, struct buf *out)
{
    if (difference == types) {
        buf_puts(out, hvd_type_name((int)request->type));
    } else if (difference == operations) {
        buf_puts(out, kind_text(request->kind));
    } else if (difference == shapes || difference == ranks) {
        for (int32_t i = 0; i < request->dims; i++)
            buf_printf(out, "%s%lld", i == 0 ? "[" : ", ", (long long)request->shape[i]);
        buf_puts(out, request->dims == 0 ? "[]" : "]");
    } else if (difference == scales) {
        buf_printf(out, "%g and %g", request->prescale, request->postscale);
    } else if (difference == reductions) {
        buf_puts(out, op_text(request->op));
    } else if (difference == memories) {
        buf_puts(out, request->on_gpu ? "GPU" : "host");
    } else {
        buf_printf(out, "%d", request->root);
    }
}

enum { HAS_SCALES = 1, HAS_PRIORITY = 2, ON_GPU = 4, FIELDS_END = 8 };

void request_write(const struct request *request, struct buf *out)
{
    bool scaled = !factor_is_one(request->prescale) || !factor_is_one(request->postscale);
    put_number(out, request->kind);
    put_number(out, request->type);
    put_number(out, request->op);
    put_signed(out, request->root);
    put_number(out, (uint64_t)request->dims);
    for (int32_t i = 0; i < request->dims; i++)
        put_number(out, (uint64_t)request->shape[i]);
    put_number(out, (scaled ? HAS_SCALES : 0) | (request->priority != 0 ? HAS_PRIORITY : 0) |
                        (request->on_gpu ? ON_GPU : 0));
    if (scaled) {
        put_real(out, request->prescale);
        put_real(out, request->postscale);
    }
    if (request->priority != 0)
        put_signed(out, request->priority);
    put_text(out, request->key + 1);
}

static void read_shape(struct reader *in, size_t dims_max, struct request *out)
{
    size_t limit = out->kind == KIND_ADD_SET ? dims_max : HVD_DIMS_MAX;
    size_t dims = (size_t)get_number_below(in, limit + 1);
    in->bad = in->bad || dims > in->left; /* a length has at least one byte */
    if (in->bad || dims == 0)
        return;
    out->dims = (int32_t)dims;
    out->shape = mem_array(dims, sizeof *out->shape);
    for (size_t i = 0; i < dims; i++)
        out->shape[i] = (int64_t)get_number_below(in, (uint64_t)INT64_MAX + 1);
}

int request_read(struct reader *in, size_t dims_max, struct request *out)
{
    *out = (struct request){.prescale = 1, .postscale = 1};
    out->kind = (enum kind)get_number_below(in, KINDS);
    uint64_t type = get_number(in), op = get_number(in);
    int64_t root = get_signed(in);
    in->bad = in->bad || type > INT_MAX || hvd_type_bytes((int)type) == 0 || op_text(op) == NULL ||
              root < INT32_MIN || root > INT32_MAX;
    out->type = in->bad ? HVD_UINT8 : (enum hvd_type)type;
    out->op = in->bad ? HVD_SUM : (enum hvd_op)op;
    out->root = (int32_t)root;
    read_shape(in, dims_max, out);
    uint64_t fields = get_number_below(in, FIELDS_END);
    out->on_gpu = (fields & ON_GPU) != 0;
    if (fields & HAS_SCALES) {
        out->prescale = get_real(in);
        out->postscale = get_real(in);
    }
    int64_t priority = fields & HAS_PRIORITY ? get_signed(in) : 0;
    in->bad = in->bad || priority < INT32_MIN || priority > INT32_MAX;
    out->priority = (int32_t)priority;
    char *name AUTO_FREE = get_text(in, HVD_NAME_MAX);
    in->bad = in->bad || request_bytes(out) == SIZE_MAX;
    if (name != NULL && !in->bad) {
        in->bad = (kinds[out->kind].letter == 't') != (name[0] != '\0');
        out->key = request_key(out->kind, name);
    }
    if (!in->bad)
        return 0;
    request_destroy(out);
    return -1;
}

/* ---- Fusion ---------------------------------------------------------------------------------- */

/* A group that others may still come into. There is one for each way in which tensors fuse. */
struct open_group {
    const struct request *first;
    size_t number, bytes;
};

static struct open_group *find(struct open_group *open, size_t count, const struct request *request)
{
    for (size_t i = 0; i < count; i++)
        if (request_fuses(open[i].first, request))
            return &open[i];
    return NULL;
}

size_t fusion_groups(const struct request *const *requests, size_t count, int size,
                     size_t threshold, size_t *groups)
{
    struct open_group *open AUTO_FREE = mem_array(count, sizeof *open);
    size_t open_count = 0, number = 0, limit = threshold < FUSION_ALONE ? threshold : FUSION_ALONE;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = request_fused_bytes(requests[i], size);
        struct open_group *group = find(open, open_count, requests[i]);
        if (group != NULL && bytes <= limit && group->bytes <= threshold - bytes) {
            groups[i] = group->number;
            group->bytes += bytes;
            continue;
        }
        groups[i] = number++;
        if (bytes > limit || !request_fuses(requests[i], requests[i]))
            continue;
        if (group == NULL)
            group = &open[open_count++];
        *group = (struct open_group){requests[i], groups[i], bytes};
    }
    return number;
}
