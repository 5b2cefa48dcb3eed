/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ranks.h"

#include "base/mem.h"

static enum hvd_status check(const struct engine_place *place, const int *ranks, int count,
                             struct error *err)
{
    bool *found AUTO_FREE = mem_array((size_t)place->size, sizeof *found);
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= place->size) {
            error_set(err, "the process set has rank %d, and the job has %d ranks", ranks[i],
                      place->size);
            return HVD_ERR_ARGUMENT;
        }
        if (found[ranks[i]]) {
            error_set(err, "the process set has rank %d twice", ranks[i]);
            return HVD_ERR_ARGUMENT;
        }
        found[ranks[i]] = true;
    }
    return HVD_OK;
}

enum hvd_status ranks_find(const struct engine_place *place, const int *ranks, int count,
                           int *set_rank, struct error *err)
{
    enum hvd_status status = check(place, ranks, count, err);
    for (int i = 0; i < count && status == HVD_OK; i++) {
        if (ranks[i] == place->rank) {
            *set_rank = i;
            return HVD_OK;
        }
    }
    if (status == HVD_OK)
        error_set(err, "rank %d is not a member of the process set", place->rank);
    return HVD_ERR_ARGUMENT;
}
