/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property tests of hvd.h: each collective with each type, operation and size is compared with a
 * serial result. Each rank submits from eight threads, in a random order that is its own.
 *
 *   collectives        tensors in host memory
 *   collectives set    the same in the process set of all ranks but rank 0
 *   collectives gpu    on a GPU, with what NCCL has
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/elements.h"
#include "job.h"
#include "place.h"
#include "values.h"

enum { THREADS = 8, ROUNDS = 4, CASES_MAX = 4000 };
#define TYPE(name, value, bytes, text) name,
static const enum hvd_type types[] = {HVD_TYPE_LIST(TYPE)};
#undef TYPE
static const enum hvd_op ops[] = {HVD_SUM, HVD_MIN, HVD_MAX, HVD_PRODUCT, HVD_AVERAGE};
static const int64_t sizes[] = {0, 1, 1001, 12001};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* One submission. */
struct test_case {
    enum kind { REDUCE, GATHER, BROADCAST, TO_ALL, SCATTER } kind;
    enum hvd_type type;
    enum hvd_op op;
    int64_t size, rows[2];
    double prescale, postscale;
    bool in_place;
    int32_t set;
    int first; /* the global rank of set rank 0 */
    char name[64];
    void *input, *output;
    int64_t splits[16];
    hvd_handle handle;
};

struct run {
    const struct job *job; /* of the process set */
    const struct place *place;
    int32_t set;
    int first;
    struct test_case *cases;
    size_t count, next;
    size_t order[CASES_MAX];
    pthread_mutex_t lock;
};

static bool is_whole(enum hvd_type type)
{
    return type != HVD_FLOAT16 && type != HVD_BFLOAT16 && type != HVD_FLOAT32 &&
           type != HVD_FLOAT64;
}

static bool may_scale(const struct run *run, const struct test_case *one)
{
    return run->place->device < 0 ? one->type != HVD_BOOL : !is_whole(one->type);
}

static bool may_reduce(const struct run *run, const struct test_case *one)
{
    if (one->type == HVD_BOOL && one->op == HVD_AVERAGE)
        return false;
    return run->place->device < 0 || (one->type != HVD_INT16 && one->type != HVD_UINT16);
}

static void add(struct run *run, struct test_case one)
{
    static const char *const kinds[] = {"allreduce", "allgather", "broadcast", "alltoall",
                                        "reducescatter"};
    if ((one.kind == REDUCE || one.kind == SCATTER) && !may_reduce(run, &one))
        return;
    one.set = run->set;
    one.first = run->first;
    snprintf(one.name, sizeof one.name, "%s.%s.%d.%lld.%g.%d", kinds[one.kind],
             hvd_type_name(one.type), one.op, (long long)one.size, one.prescale, one.in_place);
    run->cases[run->count++] = one;
}

static void add_all(struct run *run)
{
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            struct test_case one = {
                .type = types[t], .size = sizes[s], .prescale = 1, .postscale = 1};
            for (size_t o = 0; o < COUNT(ops); o++) {
                one.op = ops[o];
                one.kind = REDUCE;
                one.in_place = (t + o + s) % 2 == 0;
                add(run, one);
                one.kind = SCATTER;
                if (one.op == HVD_SUM || one.op == HVD_AVERAGE)
                    add(run, one);
            }
            one.op = HVD_SUM;
            for (int kind = GATHER; kind <= TO_ALL; kind++) {
                one.kind = (enum kind)kind;
                add(run, one);
            }
            one.kind = REDUCE;
            one.prescale = 0.5;
            one.postscale = 3;
            if (may_scale(run, &one))
                add(run, one);
            one.op = HVD_MAX;
            one.in_place = true;
            if (may_scale(run, &one))
                add(run, one);
        }
}

/* Rows from one rank to another in an alltoall: some are 0. */
static int64_t rows_to(const struct test_case *one, int from, int to)
{
    return (from * 7 + to * 3) % 4 * (one->size / 8) + (one->size > 0 ? from : 0);
}

static int64_t gathered_rows(const struct test_case *one, int rank)
{
    return rank % 3 == 1 ? 0 : one->size / 2 + rank;
}

static int64_t input_rows(const struct job *job, struct test_case *one)
{
    int64_t rows = one->size;
    if (one->kind == GATHER)
        rows = gathered_rows(one, job->rank);
    if (one->kind == TO_ALL) {
        rows = 0;
        for (int to = 0; to < job->size; to++) {
            one->splits[to] = rows_to(one, job->rank, to);
            rows += one->splits[to];
        }
        rows += 3; /* which are not sent */
    }
    return rows;
}

static int root_of(const struct job *job, const struct test_case *one)
{
    return (int)(one->type + one->size) % job->size;
}

static void submit(const struct job *job, const struct place *place, struct test_case *one)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    size_t bytes = hvd_type_bytes(one->type);
    one->rows[0] = input_rows(job, one);
    struct hvd_tensor tensor = job_tensor(one->name, one->type, one->rows, NULL, NULL);
    void *values AUTO_FREE = mem_array((size_t)one->rows[0], bytes);
    one->input = place_new(place, (size_t)one->rows[0] * bytes);
    one->output = one->in_place ? one->input : place_new(place, (size_t)one->rows[0] * bytes);
    values_write(one->type, job->rank, 0, (size_t)one->rows[0], values);
    place_put(place, one->input, values, (size_t)one->rows[0] * bytes);
    tensor.device = place->device;
    tensor.input = one->input;
    tensor.output = one->output;
    options.op = one->op;
    options.prescale = one->prescale;
    options.postscale = one->postscale;
    options.set = one->set;
    int status = HVD_OK;
    switch (one->kind) {
    case REDUCE: status = hvd_allreduce_async(&tensor, &options, &one->handle); break;
    case GATHER: status = hvd_allgather_async(&tensor, &options, &one->handle); break;
    case BROADCAST:
        status =
            hvd_broadcast_async(&tensor, one->first + root_of(job, one), &options, &one->handle);
        break;
    case TO_ALL: status = hvd_alltoall_async(&tensor, one->splits, &options, &one->handle); break;
    case SCATTER: status = hvd_reducescatter_async(&tensor, &options, &one->handle); break;
    }
    job_expect(status, HVD_OK, "", one->name);
}

/* The rows first to first + count of a rank's input. */
static void check_same(const struct test_case *one, int rank, int64_t first, int64_t count,
                       const void *result)
{
    size_t bytes = hvd_type_bytes(one->type);
    void *expected AUTO_FREE = mem_array((size_t)count, bytes);
    values_write(one->type, rank, (size_t)first, (size_t)count, expected);
    if (count > 0 && memcmp(result, expected, (size_t)count * bytes) != 0)
        worker_fail("%s: the rows of rank %d are wrong", one->name, rank);
}

/* `data`: what is in the result. */
static void check_move(const struct place *place, const struct test_case *one, size_t bytes,
                       const char *data, struct hvd_result *result)
{
    void *to = place_new(place, bytes);
    char *moved AUTO_FREE = mem_alloc(bytes);
    job_expect(hvd_result_move(result, to, bytes, NULL), HVD_OK, "", one->name);
    place_get(place, moved, to, bytes);
    if (memcmp(moved, data, bytes) != 0 || result->data != NULL || result->splits != NULL)
        worker_fail("%s: the result was not moved", one->name);
    place_free(place, to);
}

static void check_moved(const struct job *job, const struct place *place,
                        const struct test_case *one, struct hvd_result *result)
{
    size_t bytes = (size_t)result->rows * hvd_type_bytes(one->type);
    char *data AUTO_FREE = mem_alloc(bytes);
    const char *at = data;
    int64_t total = 0;
    place_get(place, data, result->data, bytes);
    for (int from = 0; from < job->size; from++) {
        int64_t count =
            one->kind == GATHER ? gathered_rows(one, from) : rows_to(one, from, job->rank);
        int64_t first = 0;
        for (int to = 0; one->kind == TO_ALL && to < job->rank; to++)
            first += rows_to(one, from, to);
        if (result->split_count != job->size || result->splits[from] != count)
            worker_fail("%s: the splits are wrong", one->name);
        check_same(one, from, first, count, at);
        at += (size_t)count * hvd_type_bytes(one->type);
        total += count;
    }
    if (result->rows != total)
        worker_fail("%s: %lld rows, not %lld", one->name, (long long)result->rows,
                    (long long)total);
    check_move(place, one, bytes, data, result);
}

/* NCCL divides the sum of integers. */
static void divide(const struct job *job, const struct test_case *one, size_t count, void *sum)
{
#define DIVIDE(type)                   \
    for (size_t i = 0; i < count; i++) \
        ((type *)sum)[i] = (type)(((type *)sum)[i] / (type)job->size);
    switch (one->type) {
    case HVD_UINT8: DIVIDE(uint8_t); break;
    case HVD_INT8: DIVIDE(int8_t); break;
    case HVD_UINT32: DIVIDE(uint32_t); break;
    case HVD_INT32: DIVIDE(int32_t); break;
    case HVD_UINT64: DIVIDE(uint64_t); break;
    default: DIVIDE(int64_t); break;
    }
#undef DIVIDE
}

static void check_average(const struct job *job, const struct test_case *one, size_t first,
                          size_t count, const void *result)
{
    size_t bytes = hvd_type_bytes(one->type);
    uint64_t *sum AUTO_FREE = mem_array(count, sizeof *sum);
    uint64_t *input AUTO_FREE = mem_array(count, sizeof *input);
    reduce_function *add_up = reduce_find(one->type, HVD_SUM);
    for (int rank = 0; rank < job->size; rank++) {
        values_write(one->type, rank, first, count, input);
        add_up(sum, sum, input, count);
    }
    divide(job, one, count, sum);
    if (count > 0 && memcmp(sum, result, count * bytes) != 0)
        worker_fail("%s: the average is wrong", one->name);
}

static void check(const struct job *job, const struct place *place, struct test_case *one)
{
    struct hvd_result result = HVD_RESULT_INIT;
    bool average = one->op == HVD_AVERAGE;
    struct reduction reduction = {
        one->type,     average ? HVD_SUM : one->op,
        job->size,     NULL,
        one->prescale, average ? one->postscale / job->size : one->postscale};
    job_expect(hvd_wait(one->handle, -1, &result), HVD_OK, "", one->name);
    int64_t first = 0, mine = one->size;
    size_t room = one->kind == GATHER || one->kind == TO_ALL
                      ? 0
                      : (size_t)one->size * hvd_type_bytes(one->type);
    void *output AUTO_FREE = mem_alloc(room);
    place_get(place, output, one->output, room);
    switch (one->kind) {
    case GATHER:
    case TO_ALL: check_moved(job, place, one, &result); break;
    case BROADCAST: check_same(one, root_of(job, one), 0, one->size, output); break;
    case SCATTER:
        for (int rank = 0; rank <= job->rank; rank++) {
            first += rank == 0 ? 0 : mine;
            mine = one->size / job->size + (rank < one->size % job->size ? 1 : 0);
        }
        /* fall through */
    case REDUCE:
        if (average && place->device >= 0 && is_whole(one->type))
            check_average(job, one, (size_t)first, (size_t)mine, output);
        else
            values_check(one->name, &reduction, (size_t)first, (size_t)mine, output);
    }
    hvd_result_free(&result);
    if (!one->in_place)
        place_free(place, one->output);
    place_free(place, one->input);
}

static void *submit_some(void *argument)
{
    struct run *run = argument;
    place_enter(run->place);
    for (;;) {
        pthread_mutex_lock(&run->lock);
        size_t next = run->next < run->count ? run->order[run->next++] : run->count;
        pthread_mutex_unlock(&run->lock);
        if (next == run->count)
            return NULL;
        submit(run->job, run->place, &run->cases[next]);
    }
}

static void shuffle(struct run *run, int round)
{
    for (size_t i = 0; i < run->count; i++)
        run->order[i] = i;
    for (size_t i = run->count - 1; i > 0; i--) {
        size_t other = values_seed(1000 * round + run->job->rank, i) % (i + 1);
        size_t kept = run->order[i];
        run->order[i] = run->order[other];
        run->order[other] = kept;
    }
    run->next = 0;
}

static void run_all(const struct job *job, const struct place *place, int32_t set, int first)
{
    struct run run = {
        .job = job, .place = place, .set = set, .first = first, .lock = PTHREAD_MUTEX_INITIALIZER};
    run.cases = mem_array(CASES_MAX, sizeof *run.cases);
    add_all(&run);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        shuffle(&run, round);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, submit_some, &run);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (size_t i = 0; i < run.count; i++)
            check(job, place, &run.cases[i]);
    }
    free(run.cases);
}

static void run_in_set(const struct job *job, const struct place *place)
{
    int32_t ranks[16], set, count = 0;
    for (int rank = job->size - 1; rank > 0; rank--)
        ranks[count++] = rank;
    job_expect(hvd_add_process_set(ranks, count, &set), HVD_OK, "", "add");
    const struct job own = {hvd_process_set_rank(set), hvd_process_set_size(set)};
    if (job->rank > 0)
        run_all(&own, place, set, 1);
}

int main(int argc, char **argv)
{
    struct job job = job_begin();
    const char *what = argc > 1 ? argv[1] : "";
    struct place place;
    place_open(&place, strcmp(what, "gpu") == 0, hvd_local_rank());
    place_enter(&place);
    if (strcmp(what, "set") == 0)
        run_in_set(&job, &place);
    else
        run_all(&job, &place, 0, 0);
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    job_end(&job);
    place_close(&place);
    return 0;
}
