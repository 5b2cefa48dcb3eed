/* SPDX-License-Identifier: Apache-2.0 */
#include "hvd_rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "job.h"
#include "rows.h"

enum { WARM_UP = 5 };

/* What a program has before its first step. */
struct tensors {
    float *data;
    char (*names)[64];
    hvd_handle *handles;
};

static void run_hvd(const struct row *row, const struct tensors *tensors)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    float *data = tensors->data;
    options.op = HVD_SUM;
    for (size_t i = 0; i < row->count; i++) {
        const int64_t length = (int64_t)row->sizes[i];
        struct hvd_tensor tensor = job_tensor(tensors->names[i], HVD_FLOAT32, &length, data, data);
        job_expect(hvd_allreduce_async(&tensor, &options, &tensors->handles[i]), HVD_OK, "",
                   tensors->names[i]);
        data += length + (int64_t)row->gap;
    }
    for (size_t i = 0; i < row->count; i++)
        job_expect(hvd_wait(tensors->handles[i], -1, NULL), HVD_OK, "", "wait");
}

static double microseconds(const struct row *row, bool hvd, const struct tensors *tensors,
                           bare_allreduce *bare, void *context)
{
    float one = 0, *data = tensors->data;
    bare(context, &one, 1); /* the ranks begin together */
    int64_t start = clock_mono_ns();
    if (hvd)
        run_hvd(row, tensors);
    size_t part = row->total / row->bare_calls;
    for (size_t i = 0; i < row->bare_calls && !hvd; i++)
        bare(context, data + i * (part + row->gap), part);
    return (double)(clock_mono_ns() - start) / 1000;
}

static void run_row(const struct row *row, bare_allreduce *bare, void *context, int rounds)
{
    float *data AUTO_FREE = mem_array(row->total + row->count * row->gap, sizeof *data);
    char(*names)[64] AUTO_FREE = mem_array(row->count, sizeof *names);
    hvd_handle *handles AUTO_FREE = mem_array(row->count, sizeof *handles);
    const struct tensors tensors = {data, names, handles};
    for (size_t i = 0; i < row->count; i++)
        snprintf(names[i], sizeof names[i], "%s.%zu", row->name, i);
    for (int i = -WARM_UP; i < rounds; i++) {
        bool hvd_first = i % 2 == 0;
        double first = microseconds(row, hvd_first, &tensors, bare, context);
        double second = microseconds(row, !hvd_first, &tensors, bare, context);
        if (i >= 0 && hvd_rank() == 0)
            printf("%s %.1f %.1f\n", row->name, hvd_first ? second : first,
                   hvd_first ? first : second);
    }
}

static void add_small(struct row *row)
{
    row->bare_calls = 1000;
    for (int i = 0; i < 1000; i++)
        row_add(row, 4096 / sizeof(float));
}

static void make_row(struct row *row, int which)
{
    switch (which) {
    case 0:
        row_begin(row, "64_MiB");
        row_add(row, (64 << 20) / sizeof(float));
        break;
    case 1:
        row_begin(row, "1000_of_4_KiB");
        add_small(row);
        break;
    case 2:
        row_begin(row, "1000_apart");
        add_small(row);
        row->gap = 64 / sizeof(float);
        break;
    default: row_begin(row, "ResNet-50"); row_add_resnet(row);
    }
}

void hvd_rounds(bare_allreduce *bare, void *context, int rounds, const char *only)
{
    struct row *row AUTO_FREE = mem_alloc(sizeof *row);
    for (int which = 0; which < 4; which++) {
        make_row(row, which);
        if (only == NULL || strcmp(only, row->name) == 0)
            run_row(row, bare, context, rounds);
    }
}
