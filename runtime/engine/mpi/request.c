/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mpi/request.h"

#include <poll.h>
#include <sched.h>

#include "base/clock.h"

#define HOT_NS 50000
#define DATA_SPIN_NS 1000000000
#define DATA_SLEEP_NS 20000
#define MESSAGE_SPIN_NS 200000
#define MESSAGE_SLEEP_NS 1000000

void request_lock(struct engine_world *world)
{
    if (world->one_at_a_time)
        pthread_mutex_lock(&world->lock);
}

void request_unlock(struct engine_world *world)
{
    if (world->one_at_a_time)
        pthread_mutex_unlock(&world->lock);
}

enum hvd_status request_may_start(const struct engine_comm *comm, struct error *err)
{
    if (atomic_load(&comm->world->aborted))
        error_set(err, "the engine was aborted");
    else if (comm->broken)
        error_set(err, "an earlier operation of this process set failed");
    else
        return HVD_OK;
    return HVD_ERR_PEER_LOST;
}

enum hvd_status request_result(struct engine_comm *comm, int code, const char *what,
                               struct error *err)
{
    if (code == MPI_SUCCESS)
        return HVD_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    comm->broken = true;
    error_set(err, "%s: %.*s", what, length, text);
    return HVD_ERR_ENGINE;
}

static void sleep_ns(int64_t ns)
{
    ppoll(NULL, 0, &(struct timespec){.tv_nsec = ns}, NULL);
}

static void give_way(enum request_kind kind, int64_t waited_ns)
{
    if (waited_ns < HOT_NS)
        return;
    if (waited_ns < (kind == REQUEST_DATA ? DATA_SPIN_NS : MESSAGE_SPIN_NS))
        sched_yield();
    else if (kind == REQUEST_DATA)
        sleep_ns(DATA_SLEEP_NS);
    else
        sleep_ns(waited_ns / 8 < MESSAGE_SLEEP_NS ? waited_ns / 8 : MESSAGE_SLEEP_NS);
}

/* Not HVD_OK: give up. */
static enum hvd_status may_wait(struct engine_comm *comm, int64_t waited_ns, int64_t timeout_ms,
                                const char *what, struct error *err)
{
    if (atomic_load(&comm->world->aborted)) {
        error_set(err, "the engine was aborted");
    } else if (timeout_ms > 0 && waited_ns / 1000000 >= timeout_ms) {
        error_set(err, "%s: a rank did not answer within %lld ms", what, (long long)timeout_ms);
    } else {
        return HVD_OK;
    }
    return HVD_ERR_PEER_LOST;
}

enum hvd_status request_wait(struct engine_comm *comm, MPI_Request *requests, int count,
                             enum request_kind kind, int64_t timeout_ms, const char *what,
                             struct error *err)
{
    int64_t start = clock_mono_ns();
    for (;;) {
        int done = 0;
        request_lock(comm->world);
        int code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        request_unlock(comm->world);
        enum hvd_status status = request_result(comm, code, what, err);
        if (done && status == HVD_OK)
            return HVD_OK;
        int64_t waited = clock_mono_ns() - start;
        if (status == HVD_OK)
            status = may_wait(comm, waited, timeout_ms, what, err);
        if (status != HVD_OK) {
            atomic_store(&comm->world->aborted, true);
            return status;
        }
        give_way(kind, waited);
    }
}
