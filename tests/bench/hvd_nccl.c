/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL beside libhvd on GPUs, in turns: hvd_nccl [ROUNDS [MIB]]. Rank 0 prints one line for each
 * round: "NAME BARE OTHER... HVD", in microseconds, from the first call until the GPU has completed
 * the last.
 *
 * - 1 to MIB (256) MiB: STEPS allreduces of one tensor. Bare, libhvd with IN_FLIGHT tensors at a
 *   time, libhvd with a wait for each, and bare with a wait for each.
 * - ResNet-50 and 1000_of_4_KiB: bare as one flat buffer, bare with copies into a buffer and out of
 *   it, bare as one group, and libhvd.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/nccl/libraries.h"
#include "job.h"
#include "place.h"
#include "rows.h"

enum { STEPS = 20, IN_FLIGHT = 4, WARM_UP = 5 };

struct bench {
    struct job job;
    struct place place;
    struct nccl nccl;
    void *comm, *stream;
    float *data, *buffer;
};

static void expect_nccl(const struct bench *bench, int result, const char *what)
{
    struct error err = ERROR_INIT;
    if (nccl_check(&bench->nccl, result, bench->comm, what, &err) != 0)
        worker_fail("%s", err.text);
}

static void open_nccl(struct bench *bench)
{
    struct error err = ERROR_INIT;
    struct nccl_id id;
    int64_t length = sizeof id;
    if (nccl_load(&bench->nccl, &err) != 0)
        worker_fail("%s", err.text);
    expect_nccl(bench, bench->nccl.get_id(&id), "ncclGetUniqueId");
    struct hvd_tensor tensor = job_tensor("id", HVD_UINT8, &length, &id, &id);
    job_expect(hvd_broadcast(&tensor, 0, NULL), HVD_OK, "", "the id");
    expect_nccl(bench, bench->nccl.create(&bench->comm, bench->job.size, id, bench->job.rank),
                "ncclCommInitRank");
}

static void bare(const struct bench *bench, float *at, size_t count)
{
    expect_nccl(
        bench,
        bench->nccl.allreduce(at, at, count, NCCL_FLOAT32, NCCL_SUM, bench->comm, bench->stream),
        "ncclAllReduce");
}

static hvd_handle submit(const struct bench *bench, const char *name, float *at, size_t count)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    int64_t length = (int64_t)count;
    hvd_handle handle;
    struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, at, at);
    tensor.stream = bench->stream;
    options.op = HVD_SUM;
    job_expect(hvd_allreduce_async(&tensor, &options, &handle), HVD_OK, "", name);
    return handle;
}

/* All ways to do the same. */
static void flat(const struct bench *bench, const struct row *row)
{
    bare(bench, bench->data, row->total);
}

static void group(const struct bench *bench, const struct row *row)
{
    float *at = bench->data;
    expect_nccl(bench, bench->nccl.group_start(), "ncclGroupStart");
    for (size_t i = 0; i < row->count; at += row->sizes[i++])
        bare(bench, at, row->sizes[i]);
    expect_nccl(bench, bench->nccl.group_end(), "ncclGroupEnd");
}

static void copy_all(const struct bench *bench, const struct row *row, bool in)
{
    float *at = bench->data, *buffer = bench->buffer;
    for (size_t i = 0; i < row->count; at += row->sizes[i], buffer += row->sizes[i++])
        place_copy(&bench->place, bench->stream, in ? buffer : at, in ? at : buffer,
                   row->sizes[i] * sizeof *at);
}

static void copies(const struct bench *bench, const struct row *row)
{
    copy_all(bench, row, true);
    bare(bench, bench->buffer, row->total);
    copy_all(bench, row, false);
}

static void hvd(const struct bench *bench, const struct row *row)
{
    hvd_handle *handles AUTO_FREE = mem_array(row->count, sizeof *handles);
    float *at = bench->data;
    for (size_t i = 0; i < row->count; at += row->sizes[i++]) {
        char name[64];
        snprintf(name, sizeof name, "%s.%zu", row->name, i);
        handles[i] = submit(bench, name, at, row->sizes[i]);
    }
    for (size_t i = 0; i < row->count; i++)
        job_expect(hvd_wait(handles[i], -1, NULL), HVD_OK, "", "wait");
}

static void bare_steps(const struct bench *bench, const struct row *row)
{
    for (int i = 0; i < STEPS; i++)
        bare(bench, bench->data, row->total);
}

static void bare_blocking_steps(const struct bench *bench, const struct row *row)
{
    for (int i = 0; i < STEPS; i++) {
        bare(bench, bench->data, row->total);
        place_sync(&bench->place, bench->stream);
    }
}

static void hvd_blocking_steps(const struct bench *bench, const struct row *row)
{
    for (int i = 0; i < STEPS; i++)
        job_expect(hvd_wait(submit(bench, row->name, bench->data, row->total), -1, NULL), HVD_OK,
                   "", "wait");
}

static void hvd_steps(const struct bench *bench, const struct row *row)
{
    hvd_handle handles[STEPS];
    for (int i = 0; i < STEPS + IN_FLIGHT; i++) {
        char name[64];
        if (i >= IN_FLIGHT)
            job_expect(hvd_wait(handles[i - IN_FLIGHT], -1, NULL), HVD_OK, "", "wait");
        snprintf(name, sizeof name, "%s.%d", row->name, i % IN_FLIGHT);
        if (i < STEPS)
            handles[i] = submit(bench, name, bench->data, row->total);
    }
}

typedef void run_function(const struct bench *bench, const struct row *row);

static double microseconds(const struct bench *bench, const struct row *row, run_function *run)
{
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    int64_t start_ns = clock_mono_ns();
    run(bench, row);
    place_sync(&bench->place, bench->stream);
    return (double)(clock_mono_ns() - start_ns) / 1000;
}

static void run_row(struct bench *bench, const struct row *row, run_function *const *ways,
                    int count, int rounds)
{
    size_t bytes = row->total * sizeof(float);
    bench->data = place_new(&bench->place, bytes);
    bench->buffer = place_new(&bench->place, bytes);
    float *values AUTO_FREE = mem_array(row->total, sizeof *values);
    for (size_t i = 0; i < row->total; i++)
        values[i] = 1.0F / (float)(i + 1); /* not zeros: hardware is faster with them */
    for (int i = -WARM_UP; i < rounds; i++) {
        double times[8];
        place_put(&bench->place, bench->data, values, bytes);
        for (int way = 0; way < count; way++) {
            int at = (way + (i + WARM_UP)) % count; /* each is first in turn */
            times[at] = microseconds(bench, row, ways[at]);
        }
        if (i < 0 || bench->job.rank != 0)
            continue;
        printf("%s", row->name);
        for (int way = 0; way < count; way++)
            printf(" %.1f", times[way]);
        printf("\n");
    }
    place_free(&bench->place, bench->data);
    place_free(&bench->place, bench->buffer);
}

int main(int argc, char **argv)
{
    static run_function *const steps[] = {bare_steps, hvd_steps, hvd_blocking_steps,
                                          bare_blocking_steps};
    static run_function *const many[] = {flat, copies, group, hvd};
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 11;
    size_t mib_max = argc > 2 ? strtoul(argv[2], NULL, 10) : 256;
    struct bench bench = {.job = job_begin()};
    struct row *row AUTO_FREE = mem_alloc(sizeof *row);
    place_open(&bench.place, true, hvd_local_rank());
    place_enter(&bench.place);
    bench.stream = place_stream(&bench.place);
    open_nccl(&bench);
    for (size_t mib = 1; mib <= mib_max; mib *= 16) {
        char name[32];
        snprintf(name, sizeof name, "%zu_MiB", mib);
        row_begin(row, name);
        row_add(row, (mib << 20) / sizeof(float));
        run_row(&bench, row, steps, 4, rounds);
    }
    row_begin(row, "ResNet-50");
    row_add_resnet(row);
    run_row(&bench, row, many, 4, rounds);
    row_begin(row, "1000_of_4_KiB");
    for (int i = 0; i < 1000; i++)
        row_add(row, 4096 / sizeof(float));
    run_row(&bench, row, many, 4, rounds);
    expect_nccl(&bench, bench.nccl.abort(bench.comm), "ncclCommAbort");
    hvd_shutdown();
    return 0;
}
