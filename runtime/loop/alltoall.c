/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/alltoall.h"

#include <stdlib.h>

#include "base/mem.h"
#include "loop/layout.h"

static int64_t rows_for(const struct runner *runner, const struct part *part, int rank)
{
    const struct submission *submission = part->token;
    return submission->splits == NULL ? part->request.shape[0] / runner->size
                                      : submission->splits[rank];
}

/* All members learn how many rows they get from each. */
static enum hvd_status exchange_rows(struct runner *runner, const struct part *part,
                                     struct layout *layout, size_t *send, struct error *err)
{
    size_t size = (size_t)runner->size;
    int64_t *rows AUTO_FREE = mem_array(size, sizeof *rows);
    size_t *bytes AUTO_FREE = mem_array(size, sizeof *bytes);
    for (size_t i = 0; i < size; i++) {
        rows[i] = rows_for(runner, part, (int)i);
        bytes[i] = sizeof *rows;
        send[i] = (size_t)rows[i] * layout->row_bytes;
    }
    return runner_called(
        runner, runner->engine->alltoallv(runner->comm, rows, bytes, layout->rows, bytes, err));
}

enum hvd_status alltoall_run(struct runner *runner, const struct part *part,
                             struct outcome *outcome, struct error *err)
{
    const struct submission *submission = part->token;
    size_t *send AUTO_FREE = mem_array((size_t)runner->size, sizeof *send);
    struct layout layout;
    layout_init(runner, &part->request, &layout);
    enum hvd_status status = exchange_rows(runner, part, &layout, send, err);
    if (status == HVD_OK && layout_measure(runner, &layout, err) != 0)
        status = HVD_ERR_MEMORY;
    if (status == HVD_OK) {
        runner_activity(runner, TRACE_ACTIVITY_BEGIN, part, 1, "ALLTOALL");
        status =
            runner_called(runner, runner->engine->alltoallv(runner->comm, submission->input, send,
                                                            layout.data, layout.receive, err));
        runner_activity(runner, TRACE_ACTIVITY_END, part, 1, "ALLTOALL");
    }
    if (status == HVD_OK)
        layout_give(runner, &layout, outcome);
    layout_destroy(runner, &layout, true);
    return status;
}
