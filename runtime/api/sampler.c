/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sampler.h"

#include <stdlib.h>

#include "base/mem.h"
#include "loop/library.h"

int hvd_sampler_create(int64_t examples, bool shuffle, uint64_t seed, struct hvd_sampler **sampler)
{
    struct error err = ERROR_INIT;
    int rank = hvd_rank(), size = hvd_size();
    if (sampler == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "there is no place for the sampler");
    *sampler = NULL;
    if (size < 1)
        return HVD_ERR_NOT_INITIALIZED;
    struct hvd_sampler *made = mem_alloc(sizeof(*made));
    if (sampler_init(&made->core, examples, shuffle, seed, rank, size, &err) < 0) {
        hvd_sampler_destroy(made);
        return library_fail(HVD_ERR_ARGUMENT, "%s", err.text);
    }
    *sampler = made;
    return HVD_OK;
}

void hvd_sampler_destroy(struct hvd_sampler *sampler)
{
    if (sampler == NULL)
        return;
    sampler_destroy(&sampler->core);
    free(sampler);
}

int64_t hvd_sampler_count(const struct hvd_sampler *sampler)
{
    return sampler == NULL ? 0 : sampler_count(&sampler->core);
}

int64_t hvd_sampler_at(const struct hvd_sampler *sampler, int64_t i)
{
    return sampler == NULL ? -1 : sampler_at(&sampler->core, i);
}

static void note(struct hvd_sampler *sampler)
{
    sampler->epoch = sampler->core.epoch;
    sampler->done = sampler->core.done;
}

void hvd_sampler_record(struct hvd_sampler *sampler, int64_t examples)
{
    if (sampler == NULL)
        return;
    sampler_record(&sampler->core, examples);
    note(sampler);
}

void hvd_sampler_set_epoch(struct hvd_sampler *sampler, int64_t epoch)
{
    if (sampler == NULL)
        return;
    sampler_set_epoch(&sampler->core, epoch);
    note(sampler);
}

int64_t hvd_sampler_epoch(const struct hvd_sampler *sampler)
{
    return sampler == NULL ? -1 : sampler->epoch;
}

void sampler_refresh(struct hvd_sampler *sampler)
{
    int rank = hvd_rank(), size = hvd_size();
    if (size < 1) { /* not initialized: the ranks come later */
        rank = sampler->core.rank;
        size = sampler->core.size;
    }
    /* What another rank sent may be anything: the sampler takes only what makes sense. */
    sampler_resize(&sampler->core, sampler->epoch, sampler->done, rank, size, NULL);
    note(sampler);
}
