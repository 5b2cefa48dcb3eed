/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/worlds.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/status.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/start/start.h"
#include "model/plan/spawn.h"
#include "output/output.h"
#include "pmix/pmix_module.h"

#define FREED_WITHIN_MS 2000
#define QUEUED_BYTES_MAX ((size_t)64 << 20) /* of the requests that wait */

struct request {
    TAILQ_ENTRY(request) next;
    struct node_link *asker;
    uint32_t epoch; /* of the rank that asks */
    int seat;
    uint64_t token;
    struct app_list apps;
    struct strv hosts; /* by app; "": any */
    bool pmi1;
    struct strv preput;
    size_t bytes; /* as it came */
};

struct worlds {
    struct job *job;
    TAILQ_HEAD(, request) requests; /* that wait; the first one is the present one */
    size_t queued;                  /* bytes of all of them */
    struct loop_timer *limit;       /* WAITING: 2 s; SENT: --start-timeout */
    struct plan *grown;             /* job->plan, once a world has started */
    int count;                      /* of worlds that were spawned and have started */
    int app_count;                  /* of these worlds */

    bool waiting;
    bool stopped; /* the job will end */

    /* SENT */
    bool sent;
    struct plan *plan;  /* of the new ranks alone */
    struct plan *whole; /* of the job with them */
    struct elastic_member *members;
    struct world world;
    struct prepare_epoch prepare;
    bool *ready; /* by place */
};

static void request_free(struct request *request)
{
    app_list_destroy(&request->apps);
    strv_destroy(&request->hosts);
    strv_destroy(&request->preput);
    free(request);
}

/* What belongs to the present request, but not what has been kept. */
static void clear_launch(struct worlds *worlds)
{
    if (worlds->limit != NULL)
        loop_timer_clear(worlds->limit);
    plan_destroy(worlds->plan);
    plan_destroy(worlds->whole);
    free(worlds->members);
    free(worlds->ready);
    worlds->plan = worlds->whole = NULL;
    worlds->members = NULL;
    worlds->ready = NULL;
    worlds->sent = worlds->waiting = false;
}

/* Takes it out of the queue. */
static void drop(struct worlds *worlds, struct request *request)
{
    TAILQ_REMOVE(&worlds->requests, request, next);
    worlds->queued -= request->bytes;
    request_free(request);
}

static struct request *first(const struct worlds *worlds)
{
    return TAILQ_FIRST(&worlds->requests);
}

void worlds_stop(struct job *job)
{
    struct worlds *worlds = job_part(job, worlds);
    clear_launch(worlds);
    while (first(worlds) != NULL)
        drop(worlds, first(worlds));
    worlds->stopped = true;
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    struct worlds *worlds = job_part(job, worlds);
    worlds->job = job;
    TAILQ_INIT(&worlds->requests);
    return 0;
}

static void close_part(struct job *job)
{
    worlds_stop(job);
    plan_destroy(job_part(job, worlds)->grown);
    loop_timer_destroy(job_part(job, worlds)->limit);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void answer(const struct request *request, enum pmix_spawn_result result, uint32_t epoch)
{
    Hvdrun__Spawned message = HVDRUN__SPAWNED__INIT;
    message.token = request->token;
    message.result = (uint32_t)result;
    message.epoch = epoch;
    message.pmi1 = request->pmi1;
    node_link_send(request->asker, FRAME_SPAWNED, request->epoch, &message.base);
}

/* The world of the rank that asks has others, too. */
static bool is_one_of_many(const struct job *job, uint32_t epoch)
{
    int ranks = 0;
    for (int seat = 0; seat < job->ranks.size && ranks < 2; seat++)
        ranks += job->ranks.records[seat].epoch == epoch;
    return ranks > 1;
}

/* The present request ends without a world. */
static void cancel(struct worlds *worlds, enum pmix_spawn_result result)
{
    const struct job *job = worlds->job;
    for (int i = 0; worlds->sent && i < job->plan->node_count; i++)
        node_link_send(job->places[i], FRAME_CANCEL, worlds->prepare.number, NULL);
    answer(first(worlds), result, 0);
    clear_launch(worlds);
    drop(worlds, first(worlds));
}

static void warn(const struct worlds *worlds, const struct request *request, const char *why)
{
    const struct job *job = worlds->job;
    bool others = is_one_of_many(job, request->epoch);
    log_warning(&job->log, "rank %d on %s cannot spawn: %s%s", job_seat_rank(job, request->seat),
                job_seat_host(job, request->seat), why,
                !others         ? ""
                : request->pmi1 ? "; with MPICH, ranks that asked with it may wait for ever"
                                : "; with Open MPI 4, ranks that asked with it may wait for ever");
}

/* Refuses the present request. */
static void refuse(struct worlds *worlds, enum pmix_spawn_result result, const char *why)
{
    warn(worlds, first(worlds), why);
    cancel(worlds, result);
}

/* ---- The start of a world -------------------------------------------------------------------- */

/* The apps of all worlds. */
static int app_count(const struct worlds *worlds)
{
    return (int)worlds->job->request->apps->count + worlds->app_count;
}

/* `freed`: as if all ranks that were spawned had ended. */
static struct plan *plan_of(const struct job *job, const struct request *request, bool freed,
                            struct error *err)
{
    const struct plan *whole = job->plan;
    size_t count = request->apps.count;
    bool *ended AUTO_FREE = mem_array((size_t)whole->size, sizeof(*ended));
    int *slots AUTO_FREE = mem_array((size_t)whole->node_count, sizeof(*slots));
    const char **hostnames AUTO_FREE = mem_array((size_t)whole->node_count, sizeof(*hostnames));
    struct spawn_app *apps AUTO_FREE = mem_array(count, sizeof(*apps));
    for (int seat = 0; seat < whole->size; seat++)
        ended[seat] = job->ranks.records[seat].state >= RANK_EXITED ||
                      (freed && job->ranks.records[seat].world > 0);
    for (int i = 0; i < whole->node_count; i++) {
        slots[i] = job_node_slots(job, i);
        hostnames[i] = job->places[i]->hello->hostname;
    }
    for (size_t i = 0; i < count; i++)
        apps[i] = (struct spawn_app){request->apps.items[i].np, request->hosts.items[i]};
    struct spawn_request wanted = {.whole = whole,
                                   .ended = ended,
                                   .slots = slots,
                                   .hostnames = hostnames,
                                   .apps = apps,
                                   .app_count = (int)count,
                                   .oversubscribe = job->settings->oversubscribe};
    return spawn_plan(&wanted, err);
}

static void fill_members(struct worlds *worlds)
{
    const struct plan *plan = worlds->plan;
    worlds->members = mem_array((size_t)plan->size, sizeof(*worlds->members));
    for (int r = 0; r < plan->size; r++)
        worlds->members[r] = (struct elastic_member){
            .seat = worlds->world.first_seat + r, .slot = plan->ranks[r].slot, .is_new = true};
}

static void fill_world(struct worlds *worlds)
{
    const struct job *job = worlds->job;
    const struct request *request = first(worlds);
    const struct rank_record *parent = &job->ranks.records[request->seat];
    worlds->whole = spawn_join(job->plan, worlds->plan, app_count(worlds));
    worlds->world =
        (struct world){.apps = &request->apps,
                       .mpi = request->pmi1 ? MPI_PMI1 : MPI_PMIX,
                       .preput = &request->preput,
                       .parent_epoch = parent->epoch,
                       .parent_rank = parent->world > 0 ? parent->world_rank : parent->rank,
                       .first_seat = job->plan->size};
}

/* Could slots become free soon? */
static bool may_wait(const struct job *job, const struct request *request)
{
    struct error err = ERROR_INIT;
    struct plan *plan = plan_of(job, request, true, &err);
    plan_destroy(plan);
    return plan != NULL;
}

static void limit_passed(void *context);

static void set_limit(struct worlds *worlds, int64_t ms)
{
    if (worlds->limit == NULL)
        worlds->limit = loop_timer_create(worlds->job->loop, limit_passed, worlds);
    if (worlds->job->times.paused_ms == 0)
        loop_timer_set(worlds->limit, ms);
}

static void pause_limit(struct job *job, bool paused)
{
    struct worlds *worlds = job_part(job, worlds);
    bool limited = worlds->sent || worlds->waiting;
    if (limited && paused)
        loop_timer_clear(worlds->limit);
    else if (limited)
        set_limit(worlds, worlds->sent ? job->settings->start_timeout : FREED_WITHIN_MS);
}

/* The present request does not find its slots. */
static void lacks_room(struct worlds *worlds, const char *why)
{
    if (worlds->waiting)
        return;
    if (may_wait(worlds->job, first(worlds))) {
        worlds->waiting = true;
        set_limit(worlds, FREED_WITHIN_MS);
    } else {
        refuse(worlds, PMIX_SPAWN_NO_ROOM, why);
    }
}

/* Sends PREPARE for the present request, or refuses it, or lets it wait. */
static void begin_first(struct worlds *worlds)
{
    struct job *job = worlds->job;
    struct error err = ERROR_INIT;
    worlds->plan = plan_of(job, first(worlds), false, &err);
    if (worlds->plan == NULL) {
        lacks_room(worlds, err.text);
        return;
    }
    fill_world(worlds);
    fill_members(worlds);
    worlds->ready = mem_array((size_t)job->plan->node_count, sizeof(*worlds->ready));
    uint32_t last = worlds->prepare.number > job->epoch ? worlds->prepare.number : job->epoch;
    worlds->prepare = (struct prepare_epoch){.number = last + 1,
                                             .plan = worlds->plan,
                                             .places = job->places,
                                             .members = worlds->members,
                                             .world = &worlds->world,
                                             .beside_others = true};
    worlds->sent = true;
    worlds->waiting = false;
    if (prepare_send(job, &worlds->prepare))
        set_limit(worlds, job->settings->start_timeout);
}

/* Begins with the first request, unless one is under way. */
static void begin_next(struct worlds *worlds)
{
    const struct job *job = worlds->job;
    while (first(worlds) != NULL && !worlds->sent && !worlds->waiting && job->state == JOB_RUNNING)
        begin_first(worlds);
}

static void limit_passed(void *context)
{
    struct worlds *worlds = context;
    struct error err = ERROR_INIT;
    if (worlds->sent) {
        refuse(worlds, PMIX_SPAWN_FAILED, "not all hosts have prepared it within --start-timeout");
    } else if (worlds->waiting) {
        plan_destroy(plan_of(worlds->job, first(worlds), false, &err));
        refuse(worlds, PMIX_SPAWN_NO_ROOM, err.text);
    }
    begin_next(worlds);
}

/* Nobody would connect with what this rank has asked for. */
static void forget_asker(struct worlds *worlds, int seat)
{
    if (first(worlds) != NULL && first(worlds)->seat == seat)
        cancel(worlds, PMIX_SPAWN_FAILED);
    for (struct request *request = first(worlds), *next; request != NULL; request = next) {
        next = TAILQ_NEXT(request, next);
        if (request->seat != seat)
            continue;
        answer(request, PMIX_SPAWN_FAILED, 0);
        drop(worlds, request);
    }
}

void worlds_exited(struct job *job, int seat)
{
    struct worlds *worlds = job_part(job, worlds);
    forget_asker(worlds, seat);
    if (worlds->waiting && job->state == JOB_RUNNING)
        begin_first(worlds);
    begin_next(worlds);
}

void worlds_finished(struct job *job, int seat)
{
    bool over = rank_world_is_over(&job->ranks, seat);
    for (int i = 0; over && i < job->plan->node_count; i++)
        node_link_send(job->places[i], FRAME_CANCEL, job->ranks.records[seat].epoch, NULL);
}

static void seat_rank(struct job *job, const struct worlds *worlds, int world_rank)
{
    const struct plan_rank *place = &worlds->plan->ranks[world_rank];
    int seat = worlds->world.first_seat + world_rank;
    struct rank_record *record = rank_table_seat(&job->ranks, seat);
    record->rank = seat;
    record->world = worlds->count;
    record->world_rank = world_rank;
    record->local_rank = place->local_rank;
    record->app = app_count(worlds) + place->app;
    record->node = job->places[place->node]->index;
    record->epoch = record->joined = worlds->prepare.number;
    struct output_seat who = {.rank = seat,
                              .local_rank = place->local_rank,
                              .host = job->places[place->node]->host,
                              .world = worlds->count,
                              .world_rank = world_rank};
    output_seat(job->output, seat, &who);
}

/* From now on, the plan of the job has the new ranks. */
static void grow(struct worlds *worlds)
{
    struct job *job = worlds->job;
    struct plan *before = worlds->grown;
    KIND_TELL(job, grow, worlds->whole);
    job->plan = worlds->grown = worlds->whole;
    worlds->whole = NULL;
    plan_destroy(before);
    worlds->app_count += (int)first(worlds)->apps.count;
}

static void start(struct worlds *worlds)
{
    struct job *job = worlds->job;
    const struct request *request = first(worlds);
    int from = worlds->world.first_seat, size = worlds->plan->size;
    worlds->count++;
    for (int r = 0; r < size; r++)
        seat_rank(job, worlds, r);
    grow(worlds);
    log_info(&job->log, "rank %d on %s has spawned world %d: ranks %d to %d are [%d.0] to [%d.%d]",
             job_seat_rank(job, request->seat), job_seat_host(job, request->seat), worlds->count,
             from, from + size - 1, worlds->count, worlds->count, size - 1);
    for (int i = 0; i < job->plan->node_count; i++)
        handshake_send_start(job, job->places[i], worlds->prepare.number);
    answer(request, PMIX_SPAWNED_OK, worlds->prepare.number);
    clear_launch(worlds);
    drop(worlds, first(worlds));
}

static void problem(struct worlds *worlds, const struct node_link *node, const Hvdrun__Ready *ready)
{
    bool program = ready->status == STATUS_NOT_FOUND || ready->status == STATUS_NOT_EXECUTABLE;
    char *text AUTO_FREE = mem_printf("%s: %s", node->host, ready->problem);
    refuse(worlds, program ? PMIX_SPAWN_NOT_FOUND : PMIX_SPAWN_FAILED, text);
}

int worlds_ready(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct worlds *worlds = job_part(job, worlds);
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, frame->length, frame->body);
    if (ready == NULL)
        return -1;
    bool awaited = worlds->sent && frame->epoch == worlds->prepare.number && node->place >= 0;
    if (awaited && ready->problem[0] != '\0') {
        problem(worlds, node, ready);
    } else if (awaited) {
        bool all = true;
        worlds->ready[node->place] = true;
        handshake_take_ready(job, node, ready);
        for (int i = 0; i < job->plan->node_count; i++)
            all = all && worlds->ready[i];
        if (all)
            start(worlds);
    }
    hvdrun__ready__free_unpacked(ready, NULL);
    begin_next(worlds);
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static struct request *request_create(const Hvdrun__Spawn *message)
{
    struct request *request = mem_alloc(sizeof(*request));
    for (size_t i = 0; i < message->n_apps; i++) {
        const Hvdrun__SpawnApp *from = message->apps[i];
        struct app *app = app_list_add(&request->apps);
        for (size_t j = 0; j < from->n_argv; j++)
            strv_add(&app->argv, from->argv[j]);
        for (size_t j = 0; j < from->n_env; j++)
            strv_add(&app->env, from->env[j]);
        app->wdir = from->wdir[0] == '\0' ? NULL : mem_strdup(from->wdir);
        app->np = from->np <= INT32_MAX ? (int)from->np : INT32_MAX;
        strv_add(&request->hosts, from->hosts);
    }
    for (size_t i = 0; i < message->n_preput; i++)
        strv_add(&request->preput, message->preput[i]);
    request->pmi1 = message->pmi1;
    request->token = message->token;
    request->seat = (int)message->seat;
    return request;
}

static void enqueue(struct worlds *worlds, struct request *request)
{
    bool gone = worlds->job->ranks.records[request->seat].state >= RANK_EXITED;
    bool fits = worlds->queued + request->bytes <= QUEUED_BYTES_MAX;
    if (!gone && fits) {
        TAILQ_INSERT_TAIL(&worlds->requests, request, next);
        worlds->queued += request->bytes;
        return;
    }
    if (!gone)
        warn(worlds, request, "too many requests wait");
    answer(request, PMIX_SPAWN_FAILED, 0);
    request_free(request);
}

int worlds_spawn(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct worlds *worlds = job_part(job, worlds);
    const Hvdrun__Spawn *message = frame->message;
    if (!job_seat_is_on(job, node, message->seat))
        return -1;
    for (size_t i = 0; i < message->n_apps; i++) {
        if (message->apps[i]->n_argv == 0)
            return -1;
    }
    if (job->state != JOB_RUNNING || worlds->stopped)
        return 0;
    struct request *request = request_create(message);
    request->asker = node;
    request->epoch = frame->epoch;
    request->bytes = frame->length;
    enqueue(worlds, request);
    begin_next(worlds);
    return 0;
}

const struct driver_part worlds_part = {.name = "worlds",
                                        .size = sizeof(struct worlds),
                                        .open = open_part,
                                        .close = close_part,
                                        .ending = worlds_stop,
                                        .pause = pause_limit};
