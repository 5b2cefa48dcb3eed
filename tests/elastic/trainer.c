/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer EXAMPLES EPOCHS GATE: goes through EXAMPLES numbers EPOCHS times, in steps of one for
 * each rank, and adds up a hash of each. The sum does not depend on the number of ranks, if each
 * number counts once in each epoch. A large buffer follows the sum, so that a rank with another
 * rank's memory is found. The training does not end before the file GATE exists.
 *
 *   in rank R/N pid PID done D     the function was entered
 *   hosts changed                  and left because of that; "lost: STATUS": because of an error
 *   final SUM                      rank 0, at the end
 *   removed                        the job goes on without this rank
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/sampler.h"
#include "elastic/place.h"
#include "elastic/run.h"
#include "engine/load.h"
#include "engine/setup.h"
#include "line/line.h"

#define MODEL 20000

struct training {
    struct elastic_self self;
    struct line *notices;
    const struct engine *engine;
    struct engine_world *engine_world;
    struct engine_comm *comm;
    struct line_reader *reader; /* wakes the engine when a rank has ended; NULL: no line */
    struct engine_place place;
    bool opened; /* before: a later one asks the launcher */
    struct elastic_world world;
    struct elastic_state state;
    struct sampler sampler;
    const char *gate;
    int64_t epochs;
    /* In the state: */
    int64_t epoch, done;
    uint64_t sum;
    uint64_t model[MODEL];
};

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9u;
    return value ^ value >> 32;
}

/* The world, over the bare engine */

static int make_comm(struct training *t, struct error *err)
{
    int *ranks AUTO_FREE = mem_array((size_t)t->place.size, sizeof(*ranks));
    for (int i = 0; i < t->place.size; i++)
        ranks[i] = i;
    return t->engine->comm_create(t->engine_world, 1, ranks, t->place.size, &t->comm, err);
}

static void rank_ended(void *context, uint32_t rank, bool failed, const char *how)
{
    struct training *t = context;
    (void)rank, (void)how;
    if (failed)
        t->engine->abort(t->engine_world);
}

static void others_left(void *context)
{
    struct training *t = context;
    t->engine->abort(t->engine_world);
}

static void open_reader(struct training *t)
{
    static const struct line_reader_ops ops = {.ended = rank_ended, .left = others_left};
    const char *address = getenv(LINE_VARIABLE), *epoch = getenv("HVDRUN_EPOCH");
    uint32_t least = epoch == NULL ? 0 : (uint32_t)strtoul(epoch, NULL, 10);
    t->reader = address == NULL ? NULL : line_reader_create(address, least, &ops, t, NULL);
}

static int world_open(void *context, struct error *err)
{
    struct training *t = context;
    struct engine_setup setup;
    int status = HVD_OK;
    if (t->opened) {
        status = elastic_place_ask(&t->self, &t->place, err);
        if (status != HVD_OK)
            return status;
        elastic_place_export(&t->place);
    }
    t->opened = true;
    status = setup_read(&setup, getenv, err);
    if (status == HVD_OK)
        status = t->engine->open(&setup, &t->engine_world, &t->place, err);
    if (status != HVD_OK)
        return status;
    elastic_notices_take(&t->notices); /* what came before is about an earlier change */
    open_reader(t);
    return make_comm(t, err);
}

static void world_close(void *context)
{
    struct training *t = context;
    line_reader_destroy(t->reader);
    t->reader = NULL;
    t->engine->comm_destroy(t->comm);
    t->engine->close(t->engine_world);
    t->comm = NULL;
    t->engine_world = NULL;
}

static int world_rank(void *context)
{
    const struct training *t = context;
    return t->place.rank;
}

static int world_max(void *context, const char *name, int64_t *value, struct error *err)
{
    struct training *t = context;
    (void)name;
    return t->engine->allreduce(t->comm, value, 1, HVD_INT64, HVD_MAX, err);
}

static int world_broadcast(void *context, const char *name, void *memory, size_t bytes, int root,
                           struct error *err)
{
    struct training *t = context;
    (void)name;
    return t->engine->broadcast(t->comm, memory, bytes, root, err);
}

static bool world_hosts_changed(void *context)
{
    struct training *t = context;
    return elastic_notices_take(&t->notices);
}

/* The training */

static void fail(const char *what, const struct error *err)
{
    dprintf(2, "FAILED: %s: %s\n", what, err->text);
    _exit(1);
}

/* The hash of this rank's i-th example; 0 if it only fills the list up. */
static uint64_t share(const struct training *t, int64_t i)
{
    const struct sampler *s = &t->sampler;
    int64_t left = s->examples - s->base;
    return i * s->size + s->rank < left
               ? mix((uint64_t)(t->epoch * s->examples + sampler_at(s, i)) + 1)
               : 0;
}

static int step(struct training *t, int64_t i, struct error *err)
{
    uint64_t part = share(t, i);
    int status = t->engine->allreduce(t->comm, &part, 1, HVD_UINT64, HVD_SUM, err);
    if (status != HVD_OK)
        return status;
    sampler_record(&t->sampler, 1);
    t->done = t->sampler.done;
    t->sum += part;
    for (size_t k = 0; k < MODEL; k++)
        t->model[k] = t->sum + k;
    elastic_state_commit(&t->state);
    return elastic_check(&t->world, err);
}

static void check_model(const struct training *t)
{
    for (size_t k = 0; t->done > 0 && k < MODEL; k++) {
        if (t->model[k] != t->sum + k) {
            dprintf(2, "FAILED: the memory is not that of the last commit\n");
            _exit(1);
        }
    }
}

static int run_epoch(struct training *t, struct error *err)
{
    int status = HVD_OK;
    if (sampler_resize(&t->sampler, t->epoch, t->done, t->place.rank, t->place.size, err) < 0)
        return HVD_ERR_ARGUMENT;
    int64_t count = t->sampler.count;
    for (int64_t i = 0; i < count && status == HVD_OK; i++)
        status = step(t, i, err);
    if (status != HVD_OK)
        return status;
    t->epoch++;
    t->done = 0;
    return HVD_OK;
}

static int train(void *context)
{
    struct training *t = context;
    struct error err = ERROR_INIT;
    int status = HVD_OK;
    dprintf(1, "in rank %d/%d pid %d epoch %" PRId64 " done %" PRId64 "\n", t->place.rank,
            t->place.size, (int)getpid(), t->epoch, t->done);
    check_model(t);
    while (status == HVD_OK && t->epoch < t->epochs)
        status = run_epoch(t, &err);
    uint8_t wait = 1;
    while (status == HVD_OK && wait) { /* all together, and any of them may be lost here */
        wait = access(t->gate, F_OK) != 0;
        usleep(10 * 1000);
        status = t->engine->broadcast(t->comm, &wait, 1, 0, &err);
        if (status == HVD_OK && wait)
            status = elastic_check(&t->world, &err);
    }
    if (status == HVD_ERR_HOSTS_CHANGED)
        dprintf(1, "hosts changed\n");
    else if (status != HVD_OK)
        dprintf(1, "lost: %d %s\n", status, err.text);
    return status;
}

static void prepare(struct training *t)
{
    struct error err = ERROR_INIT;
    char *folder AUTO_FREE = engine_folder();
    const char *modules = getenv("HVD_MODULES"), *line = getenv(LINE_VARIABLE);
    if (elastic_self_read(&t->self, getenv, &err) < 0)
        fail("environment", &err);
    if (engine_load(modules != NULL ? modules : folder, "gloo", &t->engine, &err) != HVD_OK)
        fail("engine", &err);
    t->notices = line == NULL ? NULL : line_open(line, &err);
    bool registers = t->notices != NULL && t->self.address != NULL;
    if (registers && elastic_register(&t->self, &err) != HVD_OK)
        fail("register", &err);
    elastic_state_init(&t->state);
    if (elastic_state_add(&t->state, "epoch", &t->epoch, sizeof(t->epoch), &err) < 0 ||
        elastic_state_add(&t->state, "done", &t->done, sizeof(t->done), &err) < 0 ||
        elastic_state_add(&t->state, "sum", &t->sum, sizeof(t->sum), &err) < 0 ||
        elastic_state_add(&t->state, "model", t->model, sizeof(t->model), &err) < 0)
        fail("state", &err);
    t->world = (struct elastic_world){.open = world_open,
                                      .close = world_close,
                                      .rank = world_rank,
                                      .max = world_max,
                                      .broadcast = world_broadcast,
                                      .hosts_changed = world_hosts_changed,
                                      .context = t};
}

int main(int argc, char **argv)
{
    static struct training t;
    struct error err = ERROR_INIT;
    if (argc != 4)
        return 2;
    t.epochs = strtol(argv[2], NULL, 10);
    t.gate = argv[3];
    if (sampler_init(&t.sampler, strtol(argv[1], NULL, 10), true, 7, 0, 1, &err) < 0)
        fail("sampler", &err);
    prepare(&t);
    int status = world_open(&t, &err);
    if (status == HVD_OK)
        status = elastic_run(&t.state, &t.world, t.self.address != NULL, train, &t, &err);
    if (status == HVD_ERR_REMOVED) {
        dprintf(1, "removed\n");
        return 0;
    }
    if (status != HVD_OK)
        fail("run", &err);
    if (t.place.rank == 0)
        dprintf(1, "final %016" PRIx64 "\n", t.sum);
    world_close(&t);
    line_close(t.notices);
    elastic_state_destroy(&t.state);
    sampler_destroy(&t.sampler);
    return 0;
}
