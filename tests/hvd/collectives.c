/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property tests of hvd.h: each collective with each type, operation and size is compared with a
 * serial result. Each rank submits from eight threads, in a random order that is its own.
 *
 *   collectives [set]   `set`: in the process set of all ranks but rank 0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/reduce.h"
#include "job.h"
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
    int32_t set;
    int first;
    struct test_case *cases;
    size_t count, next;
    size_t order[CASES_MAX];
    pthread_mutex_t lock;
};

static bool may_scale(const struct test_case *one)
{
    return one->type != HVD_BOOL;
}

static void add(struct run *run, struct test_case one)
{
    static const char *const kinds[] = {"allreduce", "allgather", "broadcast", "alltoall",
                                        "reducescatter"};
    if (one.type == HVD_BOOL && one.op == HVD_AVERAGE)
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
            if (may_scale(&one))
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

static void submit(const struct job *job, struct test_case *one)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    size_t bytes = hvd_type_bytes(one->type);
    one->rows[0] = input_rows(job, one);
    struct hvd_tensor tensor = job_tensor(one->name, one->type, one->rows, NULL, NULL);
    one->input = mem_array((size_t)one->rows[0], bytes);
    one->output = one->in_place ? one->input : mem_array((size_t)one->rows[0], bytes);
    values_write(one->type, job->rank, 0, (size_t)one->rows[0], one->input);
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

static void check_moved(const struct job *job, const struct test_case *one,
                        const struct hvd_result *result)
{
    const char *at = result->data;
    int64_t total = 0;
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
}

static void check(const struct job *job, struct test_case *one)
{
    struct hvd_result result = HVD_RESULT_INIT;
    bool average = one->op == HVD_AVERAGE;
    struct reduction reduction = {
        one->type,     average ? HVD_SUM : one->op,
        job->size,     NULL,
        one->prescale, average ? one->postscale / job->size : one->postscale};
    job_expect(hvd_wait(one->handle, -1, &result), HVD_OK, "", one->name);
    int64_t first = 0, mine = one->size;
    switch (one->kind) {
    case GATHER:
    case TO_ALL: check_moved(job, one, &result); break;
    case BROADCAST: check_same(one, root_of(job, one), 0, one->size, one->output); break;
    case SCATTER:
        for (int rank = 0; rank <= job->rank; rank++) {
            first += rank == 0 ? 0 : mine;
            mine = one->size / job->size + (rank < one->size % job->size ? 1 : 0);
        }
        /* fall through */
    case REDUCE: values_check(one->name, &reduction, (size_t)first, (size_t)mine, one->output);
    }
    hvd_result_free(&result);
    if (!one->in_place)
        free(one->output);
    free(one->input);
}

static void *submit_some(void *argument)
{
    struct run *run = argument;
    for (;;) {
        pthread_mutex_lock(&run->lock);
        size_t next = run->next < run->count ? run->order[run->next++] : run->count;
        pthread_mutex_unlock(&run->lock);
        if (next == run->count)
            return NULL;
        submit(run->job, &run->cases[next]);
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

static void run_all(const struct job *job, int32_t set, int first)
{
    struct run run = {.job = job, .set = set, .first = first, .lock = PTHREAD_MUTEX_INITIALIZER};
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
            check(job, &run.cases[i]);
    }
    free(run.cases);
}

static void run_in_set(const struct job *job)
{
    int32_t ranks[16], set, count = 0;
    for (int rank = job->size - 1; rank > 0; rank--)
        ranks[count++] = rank;
    job_expect(hvd_add_process_set(ranks, count, &set), HVD_OK, "", "add");
    const struct job own = {hvd_process_set_rank(set), hvd_process_set_size(set)};
    if (job->rank > 0)
        run_all(&own, set, 1);
}

int main(int argc, char **argv)
{
    struct job job = job_begin();
    if (argc > 1 && strcmp(argv[1], "set") == 0)
        run_in_set(&job);
    else
        run_all(&job, 0, 0);
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    job_end(&job);
    return 0;
}
