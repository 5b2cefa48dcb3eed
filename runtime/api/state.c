/* SPDX-License-Identifier: Apache-2.0 */
/* The elastic part of the public interface, and samplers: runtime/elastic over the functions of
 * hvd.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/sampler.h"
#include "elastic/place.h"
#include "elastic/run.h"
#include "include/hvd.h"
#include "line/line.h"
#include "loop/library.h"

/* ---- Samplers -------------------------------------------------------------------------------- */

/* That of the core, and its progress as memory of a state. */
struct hvd_sampler {
    struct sampler core;
    int64_t epoch, done; /* what a state saves, restores and shares */
};

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
    return sampler == NULL ? 0 : sampler->core.count;
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

/* Continues where `epoch` and `done` say, for the present ranks. */
static void sampler_refresh(struct hvd_sampler *sampler)
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

/* ---- States ---------------------------------------------------------------------------------- */

struct hvd_state {
    struct elastic_state core;
    struct elastic_world world;
    struct elastic_self self;
    struct line *line; /* of changed hosts; NULL: outside of hvd_elastic_run(), or without one */
    struct hvd_sampler **samplers;
    size_t sampler_count;
    hvd_elastic_function function;
    void *context;
};

/* The world: the functions of this library. The text of an error moves into `err`. */

static int copy_error(int status, struct error *err)
{
    if (status != HVD_OK)
        error_set(err, "%s", hvd_error_text());
    return status;
}

static int ranks_open(void *context, struct error *err)
{
    struct hvd_state *state = context;
    struct engine_place place;
    int status = elastic_place_ask(&state->self, &place, err);
    if (status != HVD_OK)
        return status;
    elastic_place_export(&place);
    elastic_notices_take(&state->line); /* what came before is about an earlier change */
    return copy_error(hvd_init(NULL), err);
}

static void ranks_close(void *context)
{
    (void)context;
    hvd_shutdown();
}

static int ranks_rank(void *context)
{
    (void)context;
    return hvd_rank();
}

static int ranks_max(void *context, const char *name, int64_t *value, struct error *err)
{
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    struct hvd_options options = HVD_OPTIONS_INIT;
    (void)context;
    tensor.name = name;
    tensor.type = HVD_INT64;
    tensor.input = tensor.output = value;
    options.op = HVD_MAX;
    return copy_error(hvd_allreduce(&tensor, &options), err);
}

static int ranks_broadcast(void *context, const char *name, void *memory, size_t bytes, int root,
                           struct error *err)
{
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    const int64_t shape[] = {(int64_t)bytes};
    (void)context;
    tensor.name = name;
    tensor.type = HVD_UINT8;
    tensor.shape = shape;
    tensor.dims = 1;
    tensor.input = tensor.output = memory;
    return copy_error(hvd_broadcast(&tensor, root, NULL), err);
}

static bool ranks_hosts_changed(void *context)
{
    struct hvd_state *state = context;
    return elastic_notices_take(&state->line);
}

/* The state */

int hvd_state_create(struct hvd_state **state)
{
    if (state == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "there is no place for the state");
    struct hvd_state *made = mem_alloc(sizeof(*made));
    elastic_state_init(&made->core);
    made->world = (struct elastic_world){.open = ranks_open,
                                         .close = ranks_close,
                                         .rank = ranks_rank,
                                         .max = ranks_max,
                                         .broadcast = ranks_broadcast,
                                         .hosts_changed = ranks_hosts_changed,
                                         .context = made};
    *state = made;
    return HVD_OK;
}

void hvd_state_destroy(struct hvd_state *state)
{
    if (state == NULL)
        return;
    line_close(state->line);
    elastic_state_destroy(&state->core);
    free(state->samplers);
    free(state);
}

int hvd_state_add(struct hvd_state *state, const char *name, void *memory, size_t bytes)
{
    struct error err = ERROR_INIT;
    if (state == NULL || name == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "an entry needs a state and a name");
    if (elastic_state_add(&state->core, name, memory, bytes, &err) < 0)
        return library_fail(HVD_ERR_ARGUMENT, "%s", err.text);
    return HVD_OK;
}

int hvd_state_add_sampler(struct hvd_state *state, const char *name, struct hvd_sampler *sampler)
{
    if (state == NULL || name == NULL || sampler == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "an entry needs a state, a name and a sampler");
    int status = hvd_state_add(state, name, &sampler->epoch, 2 * sizeof(sampler->epoch));
    if (status != HVD_OK)
        return status;
    MEM_ADD(state->samplers, state->sampler_count) = sampler;
    return HVD_OK;
}

static void refresh_samplers(const struct hvd_state *state)
{
    for (size_t i = 0; i < state->sampler_count; i++)
        sampler_refresh(state->samplers[i]);
}

static int no_state(void)
{
    return library_fail(HVD_ERR_ARGUMENT, "the state is NULL");
}

int hvd_state_check(struct hvd_state *state)
{
    struct error err = ERROR_INIT;
    if (state == NULL)
        return no_state();
    int status = elastic_check(&state->world, &err);
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

bool hvd_hosts_changed(struct hvd_state *state)
{
    return state != NULL && elastic_notices_take(&state->line);
}

int hvd_state_commit(struct hvd_state *state)
{
    if (state == NULL)
        return no_state();
    /* What a rank computes after a loss may be wrong, and must not replace the last commit. A GPU
     * may still have worked on it when the program's handles were complete. */
    int status = hvd_failure();
    if (status != HVD_OK && status != HVD_ERR_NOT_INITIALIZED)
        return status;
    elastic_state_commit(&state->core);
    return hvd_state_check(state);
}

int hvd_state_restore(struct hvd_state *state)
{
    if (state == NULL)
        return no_state();
    elastic_state_restore(&state->core);
    refresh_samplers(state);
    return HVD_OK;
}

int hvd_state_sync(struct hvd_state *state)
{
    struct error err = ERROR_INIT;
    if (state == NULL)
        return no_state();
    int status = elastic_sync(&state->core, &state->world, &err);
    if (status != HVD_OK)
        return library_fail(status, "%s", err.text);
    refresh_samplers(state);
    return HVD_OK;
}

/* The run */

static int call_function(void *context)
{
    struct hvd_state *state = context;
    refresh_samplers(state); /* the state was shared, and the ranks may be others */
    return state->function(state, state->context);
}

/* Without a line the job is elastic all the same; but it does not hear of hosts that come. */
static int prepare(struct hvd_state *state, struct error *err)
{
    const char *address = getenv(LINE_VARIABLE);
    if (elastic_self_read(&state->self, getenv, err) < 0)
        return HVD_ERR_ARGUMENT;
    if (state->self.address == NULL || address == NULL || state->line != NULL)
        return HVD_OK;
    state->line = line_open(address, NULL);
    return state->line == NULL ? HVD_OK : (int)elastic_register(&state->self, err);
}

int hvd_elastic_run(struct hvd_state *state, hvd_elastic_function function, void *context)
{
    struct error err = ERROR_INIT;
    if (state == NULL || function == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "an elastic run needs a state and a function");
    if (!hvd_is_initialized())
        return library_fail(HVD_ERR_NOT_INITIALIZED,
                            "the library is not initialized: call hvd_init()");
    int status = prepare(state, &err);
    state->function = function;
    state->context = context;
    if (status == HVD_OK)
        status = elastic_run(&state->core, &state->world, state->self.address != NULL,
                             call_function, state, &err);
    if (status != HVD_OK && err.text[0] != '\0')
        library_fail(status, "%s", err.text);
    return status;
}

int64_t hvd_deadline(char *reason, size_t room)
{
    char text[DEADLINE_REASON_MAX];
    struct error err = ERROR_INIT;
    const char *path = getenv(DEADLINE_VARIABLE);
    if (reason != NULL && room > 0)
        reason[0] = '\0';
    if (path == NULL)
        return -1;
    int64_t left = deadline_read(path, text, &err);
    if (left == -2)
        return library_fail(HVD_ERR_ARGUMENT, "%s", err.text);
    if (left >= 0 && reason != NULL)
        snprintf(reason, room, "%s", text);
    return left;
}
