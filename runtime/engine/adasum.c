/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/adasum.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/half.h"

/* ---- The arithmetic for two vectors, of which the caller may have only a part ---------------- */

/* a.a, b.b and a.b. Those of a whole vector are the sums of those of its parts. */
struct adasum_dots {
    double aa, bb, ab;
};

/* The functions for one type. */
struct adasum_pair {
    /* Adds the products of `count` elements to `dots`. */
    void (*multiply)(const void *a, const void *b, size_t count, struct adasum_dots *dots);
    /* Combines `count` elements. `out` may be `a` or `b`. `dots` are those of the whole vectors. */
    void (*combine)(void *out, const void *a, const void *b, size_t count,
                    const struct adasum_dots *dots);
};

/* Sums in lanes are vector code, and more exact than one long sum. */
enum { LANES = 8 };

/* The square root of the smallest normal double: Horovod's limit for the square of a norm. */
#define NORM_MIN 0x1p-511

static double factor_of(double ab, double own)
{
    return own < NORM_MIN ? 1 : 1 - ab / own / 2;
}

/* How an element is read as a double, and made of one. */
#define PLAIN(value) ((double)(value))
#define FP16(half) ((double)float_of_fp16(half))
#define BF16(half) ((double)float_of_bf16(half))
#define TO_FLOAT32(value) ((float)(value))
#define TO_FLOAT64(value) (value)
#define TO_FP16(value) fp16_of_float((float)(value))
#define TO_BF16(value) bf16_of_float((float)(value))

#define FUNCTIONS(name, type, read, write)                                                       \
    static void name##_multiply(const void *first, const void *second, size_t count,             \
                                struct adasum_dots *dots)                                        \
    {                                                                                            \
        const type *a = first, *b = second;                                                      \
        double aa[LANES] = {0}, bb[LANES] = {0}, ab[LANES] = {0};                                \
        size_t i = 0;                                                                            \
        for (; i + LANES <= count; i += LANES)                                                   \
            for (size_t k = 0; k < LANES; k++) {                                                 \
                double x = read(a[i + k]), y = read(b[i + k]);                                   \
                aa[k] += x * x, bb[k] += y * y, ab[k] += x * y;                                  \
            }                                                                                    \
        for (; i < count; i++) {                                                                 \
            double x = read(a[i]), y = read(b[i]);                                               \
            aa[0] += x * x, bb[0] += y * y, ab[0] += x * y;                                      \
        }                                                                                        \
        for (size_t k = 0; k < LANES; k++)                                                       \
            dots->aa += aa[k], dots->bb += bb[k], dots->ab += ab[k];                             \
    }                                                                                            \
    static void name##_combine(void *out, const void *first, const void *second, size_t count,   \
                               const struct adasum_dots *dots)                                   \
    {                                                                                            \
        const double by_a = factor_of(dots->ab, dots->aa), by_b = factor_of(dots->ab, dots->bb); \
        const type *a = first, *b = second;                                                      \
        type *to = out;                                                                          \
        INDEPENDENT for (size_t i = 0; i < count; i++) to[i] =                                   \
            write(by_a * read(a[i]) + by_b * read(b[i]));                                        \
    }                                                                                            \
    static const struct adasum_pair name = {name##_multiply, name##_combine};

FUNCTIONS(float32, float, PLAIN, TO_FLOAT32)
FUNCTIONS(float64, double, PLAIN, TO_FLOAT64)
FUNCTIONS(fp16, uint16_t, FP16, TO_FP16)
FUNCTIONS(bf16, uint16_t, BF16, TO_BF16)

/* NULL: Adasum does not have this type. */
static const struct adasum_pair *adasum_pair_find(enum hvd_type type)
{
    switch (type) {
    case HVD_FLOAT32: return &float32;
    case HVD_FLOAT64: return &float64;
    case HVD_FLOAT16: return &fp16;
    case HVD_BFLOAT16: return &bf16;
    default: return NULL;
    }
}

/* ---- The vectors of many ranks --------------------------------------------------------------- */

enum { STEPS_MAX = 32 };

/* Elements first to first + count of the data. */
struct range {
    size_t first, count;
};

struct run {
    const struct adasum_job *job;
    const struct adasum_pair *pair;
    size_t bytes; /* of an element */
    char *data, *other;
    const size_t *counts;
    size_t tensors, total;
    struct adasum_dots *dots; /* one for each tensor */
    size_t *send, *receive;   /* bytes, for alltoallv(); all 0 between two calls */
};

bool adasum_has_type(enum hvd_type type)
{
    return adasum_pair_find(type) != NULL;
}

/* After a failure, the engine may still write into a buffer that it had: see engine.h. */
static void release(const struct engine *engine, enum hvd_status status, void *buffer)
{
    if (status == HVD_OK || !engine->keeps_buffers)
        free(buffer);
}

/* All ranks of the set call it, those without a partner with `peer` -1. */
static enum hvd_status exchange(struct run *run, int peer, const void *in, size_t send_bytes,
                                void *out, size_t receive_bytes, struct error *err)
{
    const struct adasum_job *job = run->job;
    if (peer >= 0) {
        run->send[peer] = send_bytes;
        run->receive[peer] = receive_bytes;
    }
    enum hvd_status status =
        job->engine->alltoallv(job->comm, in, run->send, out, run->receive, 0, err);
    if (peer >= 0)
        run->send[peer] = run->receive[peer] = 0;
    return status;
}

/* Multiplies or combines the part of each tensor that is inside of the range. `other` has the same
 * elements of the partner, from the beginning of the range on. */
static void each_tensor(struct run *run, struct range range, bool is_left, bool combines)
{
    size_t begin = 0, end = range.first + range.count;
    for (size_t i = 0; i < run->tensors; begin += run->counts[i], i++) {
        size_t from = begin > range.first ? begin : range.first;
        size_t to = begin + run->counts[i] < end ? begin + run->counts[i] : end;
        if (from >= to)
            continue;
        char *own = run->data + from * run->bytes;
        char *other = run->other + (from - range.first) * run->bytes;
        char *a = is_left ? own : other, *b = is_left ? other : own;
        if (combines)
            run->pair->combine(own, a, b, to - from, &run->dots[i]);
        else
            run->pair->multiply(a, b, to - from, &run->dots[i]);
    }
}

/* Each rank of the group adds the parts of all in the order of ranks, so all have the same sums. */
static enum hvd_status add_dots(struct run *run, int group, int count, struct error *err)
{
    const struct adasum_job *job = run->job;
    size_t bytes = run->tensors * sizeof *run->dots, members = (size_t)count;
    struct adasum_dots *out = mem_array(members * run->tensors, sizeof *out);
    struct adasum_dots *in = mem_array(members * run->tensors, sizeof *in);
    for (size_t i = 0; i < members; i++) {
        memcpy(out + i * run->tensors, run->dots, bytes);
        run->send[(size_t)group + i] = run->receive[(size_t)group + i] = bytes;
    }
    enum hvd_status status =
        job->engine->alltoallv(job->comm, out, run->send, in, run->receive, 0, err);
    for (size_t i = 0; i < members; i++)
        run->send[(size_t)group + i] = run->receive[(size_t)group + i] = 0;
    memset(run->dots, 0, bytes);
    for (size_t i = 0; i < members * run->tensors; i++) {
        struct adasum_dots *sum = &run->dots[i % run->tensors];
        sum->aa += in[i].aa, sum->bb += in[i].bb, sum->ab += in[i].ab;
    }
    release(job->engine, status, out);
    release(job->engine, status, in);
    return status;
}

/* The rank keeps one half of `range`, and combines it with that of its partner. */
static enum hvd_status halve(struct run *run, int distance, struct range *range,
                             struct range *partner, struct error *err)
{
    int rank = run->job->rank;
    bool is_left = (rank & distance) == 0;
    struct range left = {range->first, range->count / 2};
    struct range right = {range->first + left.count, range->count - left.count};
    *range = is_left ? left : right;
    *partner = is_left ? right : left;
    enum hvd_status status =
        exchange(run, rank ^ distance, run->data + partner->first * run->bytes,
                 partner->count * run->bytes, run->other, range->count * run->bytes, err);
    if (status != HVD_OK)
        return status;
    memset(run->dots, 0, run->tensors * sizeof *run->dots);
    each_tensor(run, *range, is_left, false);
    status = add_dots(run, rank & ~(2 * distance - 1), 2 * distance, err);
    if (status == HVD_OK)
        each_tensor(run, *range, is_left, true);
    return status;
}

static enum hvd_status give_back(struct run *run, int distance, struct range own,
                                 struct range partner, struct error *err)
{
    return exchange(run, run->job->rank ^ distance, run->data + own.first * run->bytes,
                    own.count * run->bytes, run->data + partner.first * run->bytes,
                    partner.count * run->bytes, err);
}

/* The ranks from `power` on take part with nothing. */
static enum hvd_status stand_by(struct run *run, int power, struct error *err)
{
    enum hvd_status status = HVD_OK;
    for (int distance = 1; distance < power && status == HVD_OK; distance *= 2)
        for (int call = 0; call < 3 && status == HVD_OK; call++)
            status = exchange(run, -1, NULL, 0, NULL, 0, err);
    return status;
}

static enum hvd_status combine_power(struct run *run, int power, struct error *err)
{
    struct range own = {0, run->total}, partners[STEPS_MAX], owns[STEPS_MAX];
    enum hvd_status status = HVD_OK;
    int steps = 0;
    if (run->job->rank >= power)
        return stand_by(run, power, err);
    for (int distance = 1; distance < power && status == HVD_OK; distance *= 2) {
        status = halve(run, distance, &own, &partners[steps], err);
        owns[steps++] = own;
    }
    for (int distance = power / 2; distance > 0 && status == HVD_OK; distance /= 2) {
        steps--;
        status = give_back(run, distance, owns[steps], partners[steps], err);
    }
    return status;
}

/* Of the ranks above the power of two: their vectors go to other ranks, or come back. */
static enum hvd_status fold(struct run *run, int power, struct error *err)
{
    int rank = run->job->rank, rest = run->job->size - power;
    size_t bytes = run->total * run->bytes;
    if (rank >= power)
        return exchange(run, rank - power, run->data, bytes, NULL, 0, err);
    if (rank >= rest)
        return exchange(run, -1, NULL, 0, NULL, 0, err);
    enum hvd_status status = exchange(run, rank + power, NULL, 0, run->other, bytes, err);
    if (status == HVD_OK) {
        each_tensor(run, (struct range){0, run->total}, true, false);
        each_tensor(run, (struct range){0, run->total}, true, true);
    }
    return status;
}

static enum hvd_status unfold(struct run *run, int power, struct error *err)
{
    int rank = run->job->rank, rest = run->job->size - power;
    size_t bytes = run->total * run->bytes;
    if (rank >= power)
        return exchange(run, rank - power, NULL, 0, run->data, bytes, err);
    return rank < rest ? exchange(run, rank + power, run->data, bytes, NULL, 0, err)
                       : exchange(run, -1, NULL, 0, NULL, 0, err);
}

static enum hvd_status combine_all(struct run *run, struct error *err)
{
    int power = 1, size = run->job->size;
    while (power <= size / 2)
        power *= 2;
    enum hvd_status status = size > power ? fold(run, power, err) : HVD_OK;
    if (status == HVD_OK)
        status = combine_power(run, power, err);
    return status == HVD_OK && size > power ? unfold(run, power, err) : status;
}

enum hvd_status adasum_run(const struct adasum_job *job, void *data, const size_t *counts,
                           size_t tensors, struct error *err)
{
    struct run run = {.job = job,
                      .pair = adasum_pair_find(job->type),
                      .bytes = hvd_type_bytes((int)job->type),
                      .data = data,
                      .counts = counts,
                      .tensors = tensors};
    if (run.pair == NULL) {
        error_set(err, "adasum is only for floating-point types");
        return HVD_ERR_UNSUPPORTED;
    }
    for (size_t i = 0; i < tensors; i++)
        run.total += counts[i];
    if (job->size == 1 || run.total == 0)
        return HVD_OK;
    char *other = malloc(run.total * run.bytes);
    if (other == NULL) {
        error_set(err, "there is not enough memory for %zu bytes", run.total * run.bytes);
        return HVD_ERR_MEMORY;
    }
    size_t *sizes AUTO_FREE = mem_array(2 * (size_t)job->size, sizeof *sizes);
    struct adasum_dots *dots AUTO_FREE = mem_array(tensors, sizeof *dots);
    run.send = sizes;
    run.receive = sizes + job->size;
    run.dots = dots;
    run.other = other;
    enum hvd_status status = combine_all(&run, err);
    release(job->engine, status, other);
    return status;
}
