/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/flights.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- The bell -------------------------------------------------------------------------------- */

struct bell {
    pthread_mutex_t lock;
    int holders;
    struct channel *channel; /* NULL: silent */
};

struct bell *bell_create(struct channel *channel)
{
    struct bell *bell = mem_alloc(sizeof *bell);
    pthread_mutex_init(&bell->lock, NULL);
    bell->holders = 1;
    bell->channel = channel;
    return bell;
}

struct bell *bell_hold(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    bell->holders++;
    pthread_mutex_unlock(&bell->lock);
    return bell;
}

/* With the lock held; releases it. */
static void give_up(struct bell *bell)
{
    bool last = --bell->holders == 0;
    pthread_mutex_unlock(&bell->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&bell->lock);
    free(bell);
}

void bell_silence(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    bell->channel = NULL;
    give_up(bell);
}

void bell_ring(void *argument)
{
    struct bell *bell = argument;
    pthread_mutex_lock(&bell->lock);
    if (bell->channel != NULL)
        channel_ring(bell->channel);
    give_up(bell);
}

/* ---- The program's streams ------------------------------------------------------------------- */

static enum hvd_status wait_for(const struct nccl_comm *comm, void *stream,
                                const struct gpu_mark *mark, struct error *err)
{
    return nccl_comm_cuda(comm, comm->setup.gpu->cuda->stream_wait(stream, mark->event, 0),
                          "cuStreamWaitEvent", err);
}

/* False: it is of a stream that has no place. */
static bool keep_last(struct gpu_streams *streams, const struct gpu_mark *mark)
{
    size_t i = 0;
    if (mark->stream == CUDA_STREAM_PER_THREAD)
        return false;
    while (i < streams->count && streams->marks[i]->stream != mark->stream)
        i++;
    if (i == GPU_STREAMS_MAX)
        return false;
    if (i == streams->count || streams->marks[i]->number < mark->number)
        streams->marks[i] = mark;
    streams->count += i == streams->count ? 1 : 0;
    return true;
}

enum hvd_status gpu_streams_wait(struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct error *err)
{
    enum hvd_status status = HVD_OK;
    *streams = (struct gpu_streams){.all = true};
    for (size_t i = 0; i < count && status == HVD_OK; i++) {
        const struct submission *submission = parts[i].token;
        if (submission == NULL || submission->ready == NULL ||
            keep_last(streams, submission->ready))
            continue;
        streams->all = false;
        status = wait_for(comm, comm->stream, submission->ready, err);
    }
    for (size_t i = 0; i < streams->count && status == HVD_OK; i++)
        status = wait_for(comm, comm->stream, streams->marks[i], err);
    return status;
}

enum hvd_status gpu_streams_hold(const struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct gpu_mark *end, struct error *err)
{
    enum hvd_status status = HVD_OK;
    for (size_t i = 0; i < streams->count && status == HVD_OK; i++)
        status = wait_for(comm, streams->marks[i]->stream, end, err);
    return status;
}

/* ---- What is in flight ----------------------------------------------------------------------- */

/* One tensor. */
struct passenger {
    struct submission *token;
    struct outcome outcome;
    struct request request; /* a copy for the timeline, and for the name of the first */
};

struct flight {
    struct flight *next;
    struct gpu_mark *end;
    bool has_bell;
    struct passenger *passengers;
    size_t count;
};

void flights_init(struct flights *flights, const struct runner *runner, struct handles *handles)
{
    *flights = (struct flights){.runner = runner, .handles = handles, .end = &flights->first};
}

bool flights_are_none(const struct flights *flights)
{
    return flights->first == NULL;
}

const char *flights_first_name(const struct flights *flights)
{
    return request_name(&flights->first->passengers[0].request);
}

const struct gpu_mark *flights_take_bell(struct flights *flights)
{
    struct flight *flight = flights->first;
    if (flight == NULL || flight->has_bell)
        return NULL;
    flight->has_bell = true;
    return flight->end;
}

static struct passenger passenger_of(const struct flights *flights, const struct part *part,
                                     const struct outcome *outcomes, size_t i)
{
    struct passenger passenger = {.outcome = OUTCOME_INIT};
    if (outcomes != NULL) {
        passenger.token = part->token;
        passenger.outcome = outcomes[i];
    }
    if (i == 0 || trace_is_on(flights->runner->trace))
        passenger.request = request_copy(&part->request);
    return passenger;
}

void flights_add(struct flights *flights, struct gpu_mark *end, const struct part *parts,
                 size_t count, const struct outcome *outcomes, int64_t now_ns)
{
    struct flight *flight = MEM_NEW((struct flight){.end = end, .count = count});
    flight->passengers = mem_array(count, sizeof *flight->passengers);
    for (size_t i = 0; i < count; i++)
        flight->passengers[i] = passenger_of(flights, &parts[i], outcomes, i);
    if (flights->first == NULL)
        flights->since_ns = now_ns;
    *flights->end = flight;
    flights->end = &flight->next;
}

static void trace_end(const struct flights *flights, const struct request *request,
                      enum hvd_status status)
{
    if (request->key == NULL || !trace_is_on(flights->runner->trace))
        return;
    runner_trace(flights->runner, TRACE_ACTIVITY_END, request, "NCCL");
    runner_trace(flights->runner, TRACE_OPERATION_END, request,
                 status == HVD_OK ? kind_text(request->kind) : NULL);
}

/* Completes the first one. */
static void complete(struct flights *flights, enum hvd_status status, const char *text)
{
    struct flight *flight = flights->first;
    flights->first = flight->next;
    if (flights->first == NULL)
        flights->end = &flights->first;
    for (size_t i = 0; i < flight->count; i++) {
        struct passenger *passenger = &flight->passengers[i];
        passenger->outcome.status = status;
        passenger->outcome.text = text;
        trace_end(flights, &passenger->request, status);
        if (passenger->token != NULL)
            submission_complete(flights->handles, passenger->token, &passenger->outcome);
        request_destroy(&passenger->request);
    }
    gpu_mark_release(flight->end);
    free(flight->passengers);
    free(flight);
}

enum hvd_status flights_land(struct flights *flights, int64_t now_ns, struct error *err)
{
    while (flights->first != NULL) {
        const struct gpu_mark *end = flights->first->end;
        int result = end->gpu->cuda->event_query(end->event);
        if (result == CUDA_ERROR_NOT_READY)
            return HVD_OK;
        if (cuda_check(end->gpu->cuda, result, "the GPU failed", err) != 0)
            return HVD_ERR_ENGINE;
        complete(flights, HVD_OK, "");
        flights->since_ns = now_ns;
    }
    return HVD_OK;
}

bool flights_are_busy(const struct flights *flights)
{
    for (const struct flight *flight = flights->first; flight != NULL; flight = flight->next)
        if (flight->end->gpu->cuda->event_query(flight->end->event) == CUDA_ERROR_NOT_READY)
            return true;
    return false;
}

void flights_fail(struct flights *flights, enum hvd_status status, const char *text)
{
    while (flights->first != NULL)
        complete(flights, status, text);
}
