/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/gpu_set.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/messages.h"
#include "loop/flights.h"
#include "loop/gpu_moves.h"

enum { END_STEP_MS = 1 };
#define TICK_NS 1000000000 /* how often it asks NCCL for errors while it waits */
#define NS_PER_S 1000000000
#define EAGER_NS 20000000 /* for how long it looks at the GPU without a pause */
#define LINGER_NS 100000  /* and waits for what the program does next */

struct gpu_set {
    struct gpu_set_setup setup;
    atomic_int device; /* -1: not known yet */
    struct gpu *gpu;
    struct nccl nccl;
    struct nccl_comm *comm; /* NULL: not connected */
    struct bell *bell;
    struct flights flights;
    atomic_bool flying; /* submissions are in flight that are not complete yet */
    int64_t tick_ns;    /* the next time to ask for errors */
    int64_t linger_until_ns;
};

struct gpu_set *gpu_set_create(const struct gpu_set_setup *setup)
{
    struct gpu_set *set = mem_alloc(sizeof *set);
    set->setup = *setup;
    atomic_init(&set->device, -1);
    atomic_init(&set->flying, false);
    set->bell = bell_create(setup->channel);
    flights_init(&set->flights, setup->runner, setup->handles);
    return set;
}

void gpu_set_destroy(struct gpu_set *set)
{
    if (set == NULL)
        return;
    bell_silence(set->bell);
    nccl_unload(&set->nccl);
    free(set);
}

int gpu_set_claim(struct gpu_set *set, int device)
{
    int none = -1;
    return atomic_compare_exchange_strong(&set->device, &none, device) ? device : none;
}

bool gpu_set_is_awaited(const struct gpu_set *set)
{
    return atomic_load(&set->flying) && handles_are_awaited(set->setup.handles);
}

/* A program that waits submits the next operation soon. */
static void linger(struct gpu_set *set, int64_t now_ns)
{
    if (handles_are_awaited(set->setup.handles))
        set->linger_until_ns = now_ns + LINGER_NS;
}

/* ---- Connecting the members ------------------------------------------------------------------ */

/* What this rank needs. -1: it is not there, and nobody can use the others. */
static int prepare(struct gpu_set *set, struct error *err)
{
    int device = atomic_load(&set->device);
    if (device < 0)
        return error_set(err, "it has joined, and has not used a GPU before");
    if (set->nccl.library == NULL && nccl_load(&set->nccl, err) != 0)
        return -1;
    set->gpu = gpus_get(set->setup.gpus, device, err);
    return set->gpu == NULL ? -1 : 0;
}

static struct message_set message_set_of(const struct gpu_set *set)
{
    const struct runner *runner = set->setup.runner;
    return (struct message_set){runner->engine, runner->comm, runner->rank, runner->size,
                                set->setup.timeout_ms};
}

/* What the root gives to all: NCCL's id, or why there is none. */
struct invitation {
    struct nccl_id id;
    char problem[ERROR_TEXT_MAX];
};

/* All members learn whether all have what they need, over the engine of the set. */
static enum hvd_status agree_on_id(struct gpu_set *set, struct nccl_id *id, bool *refused,
                                   struct error *err)
{
    const struct message_set members = message_set_of(set);
    struct error own = ERROR_INIT;
    struct invitation invitation = {.problem = ""};
    int failed;
    prepare(set, &own);
    enum hvd_status status = messages_agree(&members, own.text, &failed, err);
    if (status != HVD_OK)
        return status;
    if (failed >= 0) {
        error_wrap(err, "rank %d cannot use NCCL", set->setup.runner->ranks[failed]);
        *refused = true;
        return HVD_OK;
    }
    if (members.rank == 0 && nccl_check(&set->nccl, set->nccl.get_id(&invitation.id), NULL,
                                        "ncclGetUniqueId", &own) != 0)
        memcpy(invitation.problem, own.text, sizeof own.text);
    status = messages_from_root(&members, &invitation, sizeof invitation, err);
    *id = invitation.id;
    *refused = status == HVD_OK && invitation.problem[0] != '\0';
    if (*refused)
        error_set(err, "%.*s", ERROR_TEXT_MAX - 1, invitation.problem);
    return status;
}

/* `*refused`: a rank cannot; the error says which, and the library stays usable. */
static enum hvd_status connect_members(struct gpu_set *set, bool *refused, struct error *err)
{
    const struct runner *runner = set->setup.runner;
    struct nccl_id id;
    enum hvd_status status = agree_on_id(set, &id, refused, err);
    if (status != HVD_OK || *refused)
        return status;
    struct nccl_setup setup = {.gpu = set->gpu,
                               .id = id,
                               .nccl = &set->nccl,
                               .rank = runner->rank,
                               .size = runner->size,
                               .timeout_ms = set->setup.timeout_ms,
                               .stop = set->setup.stop,
                               .context = set->setup.context};
    if (gpu_enter(set->gpu, err) != 0)
        return HVD_ERR_ENGINE;
    status = nccl_comm_create(&setup, &set->comm, err);
    gpu_leave(set->gpu);
    return status;
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void trace_begin(const struct gpu_set *set, const struct part *parts, size_t count,
                        const char *activity)
{
    const struct runner *runner = set->setup.runner;
    for (size_t i = 0; i < count && trace_is_on(runner->trace); i++) {
        const struct request *request = &parts[i].request;
        runner_trace(runner, TRACE_OPERATION_BEGIN, request, kind_text(request->kind));
        runner_trace(runner, TRACE_ACTIVITY_BEGIN, request, activity);
    }
}

static enum hvd_status move(struct gpu_set *set, const struct part *parts, size_t count,
                            struct outcome *outcomes, struct error *err)
{
    struct runner *runner = set->setup.runner;
    return gpu_stage_has(&parts[0].request)
               ? gpu_stage_run(runner, set->comm, parts, count, set->setup.limit_ns, err)
               : gpu_moves_launch(runner, set->comm, parts, count, outcomes, err);
}

/* The bell rings when the stream has come to the mark. */
static enum hvd_status hang_bell(const struct gpu_set *set, const struct gpu_mark *mark,
                                 struct error *err)
{
    const struct cuda *cuda = set->gpu->cuda;
    int result = cuda->stream_wait(set->comm->bells, mark->event, 0);
    if (result == CUDA_SUCCESS) {
        struct bell *bell = bell_hold(set->bell);
        result = cuda->stream_call(set->comm->bells, bell_ring, bell);
        if (result != CUDA_SUCCESS)
            bell_ring(bell);
    }
    return nccl_comm_cuda(set->comm, result, "cuLaunchHostFunc", err);
}

/* Threads of the program may wait for the end. */
static void take_off(struct gpu_set *set, const struct part *parts, size_t count)
{
    atomic_store(&set->flying, true);
    for (size_t i = 0; i < count; i++)
        if (parts[i].token != NULL)
            submission_launched(set->setup.handles, parts[i].token);
}

static enum hvd_status launch(struct gpu_set *set, const struct part *parts, size_t count,
                              struct error *err)
{
    struct outcome *outcomes AUTO_FREE = mem_array(count, sizeof *outcomes);
    for (size_t i = 0; i < count; i++)
        outcomes[i] = (struct outcome)OUTCOME_INIT;
    struct gpu_streams streams;
    enum hvd_status status = gpu_streams_wait(&streams, set->comm, parts, count, err);
    if (status == HVD_OK)
        status = move(set, parts, count, outcomes, err);
    if (status != HVD_OK)
        return status;
    struct gpu_mark *end = gpu_mark(set->gpu, set->comm->stream, err);
    status = end == NULL ? HVD_ERR_ENGINE : HVD_OK;
    bool early = set->setup.completes_at_launch && streams.all;
    if (status == HVD_OK && early) /* the program's streams wait instead of its threads */
        status = gpu_streams_hold(&streams, set->comm, end, err);
    if (status != HVD_OK) {
        gpu_moves_drop(set->comm, outcomes, count);
        gpu_mark_release(end);
        return status;
    }
    int64_t now_ns = clock_mono_ns();
    if (flights_are_none(&set->flights))
        set->tick_ns = now_ns + TICK_NS;
    flights_add(&set->flights, end, parts, count, early ? NULL : outcomes, now_ns);
    if (early) {
        submissions_complete(set->setup.handles, parts, count, outcomes);
        linger(set, now_ns);
    } else
        take_off(set, parts, count);
    return HVD_OK;
}

enum hvd_status gpu_set_run(struct gpu_set *set, const struct part *parts, size_t count,
                            struct error *err)
{
    bool refused = false;
    enum hvd_status status = HVD_OK;
    if (set->comm == NULL)
        status = connect_members(set, &refused, err);
    if (refused)
        submissions_fail(set->setup.handles, parts, count, HVD_ERR_UNSUPPORTED, err->text);
    if (status != HVD_OK || refused)
        return status;
    if (gpu_enter(set->gpu, err) != 0)
        return HVD_ERR_ENGINE;
    trace_begin(set, parts, count, gpu_moves_activity(&parts[0].request));
    status = launch(set, parts, count, err);
    gpu_leave(set->gpu);
    return status;
}

int64_t gpu_set_deadline(const struct gpu_set *set)
{
    int64_t now_ns = clock_mono_ns();
    bool is_eager = gpu_set_is_awaited(set) && now_ns < set->flights.since_ns + EAGER_NS;
    if (is_eager || now_ns < set->linger_until_ns)
        return 0;
    return flights_are_none(&set->flights) ? INT64_MAX : set->tick_ns;
}

enum hvd_status gpu_set_sleeps(struct gpu_set *set, struct error *err)
{
    const struct gpu_mark *mark = flights_take_bell(&set->flights);
    if (mark == NULL)
        return HVD_OK;
    if (gpu_enter(set->gpu, err) != 0)
        return HVD_ERR_ENGINE;
    enum hvd_status status = hang_bell(set, mark, err);
    gpu_leave(set->gpu);
    return status;
}

static enum hvd_status look(struct gpu_set *set, int64_t now_ns, struct error *err)
{
    int64_t since_ns = set->flights.since_ns;
    enum hvd_status status = flights_land(&set->flights, now_ns, err);
    if (set->flights.since_ns != since_ns)
        linger(set, now_ns);
    if (flights_are_none(&set->flights))
        atomic_store(&set->flying, false);
    if (status != HVD_OK || flights_are_none(&set->flights) || now_ns < set->tick_ns)
        return status;
    set->tick_ns = now_ns + TICK_NS;
    if (now_ns - set->flights.since_ns <= set->setup.limit_ns)
        return nccl_comm_state(set->comm, err);
    error_set(err, "the GPU has not completed '%.200s' within %lld s",
              flights_first_name(&set->flights), (long long)(set->setup.limit_ns / NS_PER_S));
    return HVD_ERR_TIMEOUT;
}

enum hvd_status gpu_set_check(struct gpu_set *set, struct error *err)
{
    if (flights_are_none(&set->flights))
        return HVD_OK;
    if (gpu_enter(set->gpu, err) != 0)
        return HVD_ERR_ENGINE;
    enum hvd_status status = look(set, clock_mono_ns(), err);
    gpu_leave(set->gpu);
    return status;
}

/* ---- The end --------------------------------------------------------------------------------- */

static enum hvd_status drain(struct gpu_set *set, struct error *err)
{
    int64_t end_ms = clock_mono_ms() + set->setup.timeout_ms;
    enum hvd_status status = gpu_set_check(set, err);
    while (status == HVD_OK && !flights_are_none(&set->flights)) {
        if (clock_mono_ms() >= end_ms) {
            error_set(err, "the GPU did not complete the operations in time");
            return HVD_ERR_TIMEOUT;
        }
        poll(NULL, 0, END_STEP_MS);
        status = gpu_set_check(set, err);
    }
    return status;
}

/* Other ranks may still read the memory of this one, so it ends when all are at rest. */
static enum hvd_status rest(struct gpu_set *set, struct error *err)
{
    const struct message_set members = message_set_of(set);
    int failed;
    enum hvd_status status = drain(set, err);
    return status == HVD_OK ? messages_agree(&members, "", &failed, err) : status;
}

void gpu_set_end(struct gpu_set *set, enum hvd_status status, const char *text)
{
    struct error err = ERROR_INIT;
    if (set->comm == NULL)
        return;
    if (status == HVD_OK) {
        status = rest(set, &err);
        text = err.text;
    }
    if (gpu_enter(set->gpu, NULL) == 0) {
        nccl_comm_abort(set->comm);
        while (flights_are_busy(&set->flights) && !nccl_comm_is_aborted(set->comm))
            poll(NULL, 0, END_STEP_MS);
        flights_fail(&set->flights, status, text);
        nccl_comm_destroy(set->comm);
        gpu_leave(set->gpu);
    }
    flights_fail(&set->flights, status, text); /* if CUDA does not work any more */
    atomic_store(&set->flying, false);
    set->comm = NULL;
}
