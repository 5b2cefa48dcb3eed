/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/layout.h"

#include <stdlib.h>

#include "base/mem.h"

void layout_init(const struct runner *runner, const struct request *request, struct layout *layout)
{
    size_t size = (size_t)runner->size, bytes = hvd_type_bytes((int)request->type);
    for (int32_t i = 1; i < request->dims; i++)
        bytes *= (size_t)request->shape[i];
    *layout = (struct layout){.row_bytes = bytes};
    layout->rows = mem_array(size, sizeof *layout->rows);
    layout->receive = mem_array(size, sizeof *layout->receive);
}

void layout_destroy(const struct runner *runner, struct layout *layout, bool given_rows)
{
    free(layout->receive);
    if (given_rows)
        runner_free(runner, layout->rows);
    else
        free(layout->rows);
    runner_free(runner, layout->data);
}

int layout_measure(const struct runner *runner, struct layout *layout, struct error *err)
{
    for (int i = 0; i < runner->size; i++) {
        size_t rows = (size_t)layout->rows[i];
        if (layout->rows[i] < 0 ||
            __builtin_mul_overflow(rows, layout->row_bytes, &layout->receive[i]) ||
            __builtin_add_overflow(layout->total, layout->receive[i], &layout->total))
            return error_set(err, "rank %d announces %lld rows", runner->ranks[i],
                             (long long)layout->rows[i]);
        layout->total_rows += layout->rows[i];
    }
    layout->data = layout->total == 0 ? NULL : malloc(layout->total);
    if (layout->total > 0 && layout->data == NULL)
        return error_set(err, "there is not enough memory for a result of %zu bytes",
                         layout->total);
    return 0;
}

void layout_give(const struct runner *runner, struct layout *layout, struct outcome *outcome)
{
    outcome->data = layout->data;
    outcome->rows = layout->total_rows;
    outcome->splits = layout->rows;
    outcome->split_count = runner->size;
    layout->data = NULL;
    layout->rows = NULL;
}
