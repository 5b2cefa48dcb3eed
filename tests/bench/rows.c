/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdio.h>

void row_begin(struct row *row, const char *name)
{
    *row = (struct row){.bare_calls = 1};
    snprintf(row->name, sizeof row->name, "%s", name);
}

void row_add(struct row *row, size_t size)
{
    row->sizes[row->count++] = size;
    row->total += size;
}

/* A convolution and its batch norm. */
static void add_convolution(struct row *row, size_t in, size_t out, size_t kernel)
{
    row_add(row, in * out * kernel * kernel);
    row_add(row, out);
    row_add(row, out);
}

void row_add_resnet(struct row *row)
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
    row_add(row, in * 1000);
    row_add(row, 1000);
}
