/* SPDX-License-Identifier: Apache-2.0 */
/* Two process sets: even and odd ranks compute two sums at the same time. Then all ranks compute
 * one sum together. */
#include <stdio.h>
#include <stdlib.h>

#include <hvd.h>

static void check(int status)
{
    if (status == HVD_OK)
        return;
    fprintf(stderr, "%s\n", hvd_error_text());
    exit(1);
}

static double sum(const char *name, double value, int32_t set)
{
    struct hvd_tensor tensor = HVD_TENSOR_INIT; /* a scalar */
    struct hvd_options options = HVD_OPTIONS_INIT;
    tensor.name = name;
    tensor.type = HVD_FLOAT64;
    tensor.input = tensor.output = &value;
    options.op = HVD_SUM;
    options.set = set;
    check(hvd_allreduce(&tensor, &options));
    return value;
}

int main(void)
{
    check(hvd_init(NULL));
    int32_t sets[2], *ranks = calloc((size_t)hvd_size(), sizeof *ranks);
    if (ranks == NULL || hvd_size() < 2) {
        fprintf(stderr, "start it with at least 2 ranks, such as hvdrun -np 4\n");
        return 1;
    }
    for (int parity = 0; parity < 2; parity++) { /* every rank adds both sets */
        int32_t count = 0;
        for (int rank = parity; rank < hvd_size(); rank += 2)
            ranks[count++] = rank;
        check(hvd_add_process_set(ranks, count, &sets[parity]));
    }
    free(ranks);
    int32_t own = sets[hvd_rank() % 2];
    double part = sum("part", hvd_rank(), own), all = sum("all", hvd_rank(), 0);
    if (hvd_process_set_rank(own) == 0)
        printf("the %s ranks have the sum %g, and all ranks %g\n",
               hvd_rank() % 2 == 0 ? "even" : "odd", part, all);
    check(hvd_shutdown());
    return 0;
}
