/* SPDX-License-Identifier: Apache-2.0 */
#include "hvd_rounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "job.h"

enum { TENSORS_MAX = 1000, WARM_UP = 5 };

/* One row: the tensors of a step through libhvd, and the bare calls for the same data. */
struct row {
    const char *name;
    size_t sizes[TENSORS_MAX], count, total; /* elements */
    size_t bare_calls;                       /* each has total / bare_calls elements */
};

static void add(struct row *row, size_t size)
{
    row->sizes[row->count++] = size;
    row->total += size;
}

/* A convolution and its batch norm. */
static void add_convolution(struct row *row, size_t in, size_t out, size_t kernel)
{
    add(row, in * out * kernel * kernel);
    add(row, out);
    add(row, out);
}

/* The parameters of ResNet-50: 161 tensors, 25.6 million elements. */
static void add_resnet(struct row *row)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    size_t in = 64;
    add_convolution(row, 3, 64, 7);
    for (size_t stage = 0; stage < 4; stage++) {
        size_t width = (size_t)64 << stage;
        for (size_t block = 0; block < blocks[stage]; block++) {
            add_convolution(row, in, width, 1);
            add_convolution(row, width, width, 3);
            add_convolution(row, width, 4 * width, 1);
            if (block == 0)
                add_convolution(row, in, 4 * width, 1);
            in = 4 * width;
        }
    }
    add(row, in * 1000);
    add(row, 1000);
}

static void run_hvd(const struct row *row, float *data)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    hvd_handle *handles AUTO_FREE = mem_array(row->count, sizeof *handles);
    options.op = HVD_SUM;
    for (size_t i = 0; i < row->count; i++) {
        char name[64];
        const int64_t length = (int64_t)row->sizes[i];
        snprintf(name, sizeof name, "%s.%zu", row->name, i);
        struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, data, data);
        job_expect(hvd_allreduce_async(&tensor, &options, &handles[i]), HVD_OK, "", name);
        data += length;
    }
    for (size_t i = 0; i < row->count; i++)
        job_expect(hvd_wait(handles[i], -1, NULL), HVD_OK, "", "wait");
}

static double microseconds(const struct row *row, bool hvd, float *data, bare_allreduce *bare,
                           void *context)
{
    float one = 0;
    bare(context, &one, 1); /* the ranks begin together */
    int64_t start = clock_mono_ns();
    if (hvd)
        run_hvd(row, data);
    size_t part = row->total / row->bare_calls;
    for (size_t i = 0; i < row->bare_calls && !hvd; i++)
        bare(context, data + i * part, part);
    return (double)(clock_mono_ns() - start) / 1000;
}

static void run_row(const struct row *row, bare_allreduce *bare, void *context, int rounds)
{
    float *data AUTO_FREE = mem_array(row->total, sizeof *data);
    for (int i = -WARM_UP; i < rounds; i++) {
        bool hvd_first = i % 2 == 0;
        double first = microseconds(row, hvd_first, data, bare, context);
        double second = microseconds(row, !hvd_first, data, bare, context);
        if (i >= 0 && hvd_rank() == 0)
            printf("%s %.1f %.1f\n", row->name, hvd_first ? second : first,
                   hvd_first ? first : second);
    }
}

void hvd_rounds(bare_allreduce *bare, void *context, int rounds)
{
    struct row *row AUTO_FREE = mem_alloc(sizeof *row);
    *row = (struct row){.name = "64_MiB", .bare_calls = 1};
    add(row, (64 << 20) / sizeof(float));
    run_row(row, bare, context, rounds);
    *row = (struct row){.name = "1000_of_4_KiB", .bare_calls = 1000};
    for (int i = 0; i < 1000; i++)
        add(row, 4096 / sizeof(float));
    run_row(row, bare, context, rounds);
    *row = (struct row){.name = "ResNet-50", .bare_calls = 1};
    add_resnet(row);
    run_row(row, bare, context, rounds);
}
