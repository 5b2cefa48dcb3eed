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

static void make_row(struct row *row, int which)
{
    switch (which) {
    case 0:
        row_begin(row, "64_MiB");
        row_add(row, (64 << 20) / sizeof(float));
        break;
    case 1:
        row_begin(row, "1000_of_4_KiB");
        row->bare_calls = 1000;
        for (int i = 0; i < 1000; i++)
            row_add(row, 4096 / sizeof(float));
        break;
    default: row_begin(row, "ResNet-50"); row_add_resnet(row);
    }
}

void hvd_rounds(bare_allreduce *bare, void *context, int rounds, const char *only)
{
    struct row *row AUTO_FREE = mem_alloc(sizeof *row);
    for (int which = 0; which < 3; which++) {
        make_row(row, which);
        if (only == NULL || strcmp(only, row->name) == 0)
            run_row(row, bare, context, rounds);
    }
}
