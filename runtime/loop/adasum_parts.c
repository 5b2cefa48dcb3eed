/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/adasum_parts.h"

#include <stdlib.h>

#include "base/mem.h"
#include "engine/adasum.h"

enum hvd_status adasum_parts(struct runner *runner, const struct part *parts, size_t count,
                             void *data, struct error *err)
{
    const struct adasum_job job = {.engine = runner->engine,
                                   .comm = runner->comm,
                                   .rank = runner->rank,
                                   .size = runner->size,
                                   .type = parts[0].request.type};
    size_t *counts AUTO_FREE = mem_array(count, sizeof *counts);
    for (size_t i = 0; i < count; i++)
        counts[i] = request_elements(&parts[i].request);
    return adasum_run(&job, data, counts, count, err);
}
