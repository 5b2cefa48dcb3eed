/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define STEP_NS 5000000 /* how often it asks `stop` */
#define NS_PER_S 1000000000

/* ---- Connecting ------------------------------------------------------------------------------ */

/*
 * Makes and ends communicators of NCCL without waiting for longer than the caller can.
 *
 * A communicator of NCCL that does not block starts a thread for each operation (since 2.22), which
 * takes longer than the operation. So libhvd's communicators block. ncclCommInitRank() then returns
 * only when all ranks have called it, and nothing can end it. It runs in a thread of its own, which
 * the caller gives up if a rank does not come. What such a thread still makes, it ends itself.
 */

/* What the thread needs. The structs of the setup may have gone when it ends. */
struct attempt {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cuda cuda;
    struct nccl nccl;
    void *context;
    int device, rank, size;
    struct nccl_id id;
    bool done, given_up;
    void *handle;
    int result;
    struct error err;
};

static void attempt_free(struct attempt *attempt)
{
    attempt->cuda.context_release(attempt->device);
    pthread_cond_destroy(&attempt->changed);
    pthread_mutex_destroy(&attempt->lock);
    free(attempt);
}

static void connect_ranks(struct attempt *attempt)
{
    void *context;
    attempt->result = attempt->cuda.context_push(attempt->context);
    if (cuda_check(&attempt->cuda, attempt->result, "cuCtxPushCurrent", &attempt->err) != 0)
        return;
    attempt->result =
        attempt->nccl.create(&attempt->handle, attempt->size, attempt->id, attempt->rank);
    nccl_check(&attempt->nccl, attempt->result, NULL, "ncclCommInitRank", &attempt->err);
    attempt->cuda.context_pop(&context);
}

static void *run(void *argument)
{
    struct attempt *attempt = argument;
    connect_ranks(attempt);
    pthread_mutex_lock(&attempt->lock);
    attempt->done = true;
    bool given_up = attempt->given_up;
    pthread_cond_signal(&attempt->changed);
    pthread_mutex_unlock(&attempt->lock);
    if (!given_up)
        return NULL;
    if (attempt->result == NCCL_SUCCESS)
        attempt->nccl.abort(attempt->handle);
    attempt_free(attempt);
    return NULL;
}

static struct attempt *attempt_new(const struct nccl_setup *setup, struct error *err)
{
    struct attempt *attempt = MEM_NEW((struct attempt){.cuda = *setup->gpu->cuda,
                                                       .nccl = *setup->nccl,
                                                       .device = setup->gpu->device,
                                                       .rank = setup->rank,
                                                       .size = setup->size,
                                                       .id = setup->id,
                                                       .err = ERROR_INIT});
    int result = attempt->cuda.context_retain(&attempt->context, attempt->device);
    if (cuda_check(&attempt->cuda, result, "cuDevicePrimaryCtxRetain", err) != 0) {
        free(attempt);
        return NULL;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&attempt->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&attempt->lock, NULL);
    return attempt;
}

/* False: it gave up, and the thread has the attempt. */
static bool wait_for(const struct nccl_setup *setup, struct attempt *attempt)
{
    int64_t end_ns = clock_mono_ns() + setup->timeout_ms * 1000000;
    pthread_mutex_lock(&attempt->lock);
    while (!attempt->done) {
        int64_t now_ns = clock_mono_ns(), until_ns = now_ns + STEP_NS;
        if (now_ns >= end_ns || setup->stop(setup->context))
            break;
        struct timespec until = {until_ns / NS_PER_S, until_ns % NS_PER_S};
        pthread_cond_timedwait(&attempt->changed, &attempt->lock, &until);
    }
    bool done = attempt->done;
    attempt->given_up = !done;
    pthread_mutex_unlock(&attempt->lock);
    return done;
}

/* All members call it. HVD_ERR_PEER_LOST: it took too long, or `stop` said so. HVD_ERR_ENGINE: NCCL
 * failed. */
static enum hvd_status connect_all(const struct nccl_setup *setup, void **handle, struct error *err)
{
    pthread_t thread;
    struct attempt *attempt = attempt_new(setup, err);
    if (attempt == NULL)
        return HVD_ERR_ENGINE;
    int code = thread_start(&thread, "hvd-nccl", run, attempt);
    if (code != 0) {
        attempt_free(attempt);
        error_errno(err, code, "cannot start a thread");
        return HVD_ERR_MEMORY;
    }
    if (!wait_for(setup, attempt)) {
        pthread_detach(thread);
        error_set(err, "NCCL did not connect the ranks within %lld ms",
                  (long long)setup->timeout_ms);
        return HVD_ERR_PEER_LOST;
    }
    pthread_join(thread, NULL);
    enum hvd_status status = attempt->result == 0                   ? HVD_OK
                             : attempt->result == NCCL_REMOTE_ERROR ? HVD_ERR_PEER_LOST
                                                                    : HVD_ERR_ENGINE;
    *handle = attempt->handle;
    if (status != HVD_OK) {
        error_set(err, "%s", attempt->err.text);
        *handle = NULL;
    }
    attempt_free(attempt);
    return status;
}

/* ---- Abort ----------------------------------------------------------------------------------- */

/* ncclCommAbort() in a thread of its own: it stops the operations at once, and takes longer for the
 * rest. */
struct nccl_abort {
    const struct nccl *nccl;
    const struct gpu *gpu;
    void *handle;
    pthread_t thread;
    bool started;
    atomic_bool done;
};

static void *run_abort(void *argument)
{
    struct nccl_abort *abort = argument;
    if (gpu_enter(abort->gpu, NULL) == 0) {
        abort->nccl->abort(abort->handle);
        gpu_leave(abort->gpu);
    }
    atomic_store(&abort->done, true);
    return NULL;
}

static struct nccl_abort *abort_begin(const struct nccl *nccl, const struct gpu *gpu, void *handle)
{
    if (handle == NULL)
        return NULL;
    struct nccl_abort *abort = mem_alloc(sizeof *abort);
    abort->nccl = nccl;
    abort->gpu = gpu;
    abort->handle = handle;
    atomic_init(&abort->done, false);
    abort->started = thread_start(&abort->thread, "hvd-nccl", run_abort, abort) == 0;
    if (!abort->started)
        run_abort(abort);
    return abort;
}

static void abort_end(struct nccl_abort *abort)
{
    if (abort == NULL)
        return;
    if (abort->started)
        pthread_join(abort->thread, NULL);
    free(abort);
}

/* ---- The communicator ------------------------------------------------------------------------ */

enum hvd_status nccl_comm_cuda(const struct nccl_comm *comm, int result, const char *what,
                               struct error *err)
{
    if (cuda_check(comm->setup.gpu->cuda, result, what, err) == 0)
        return HVD_OK;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? HVD_ERR_MEMORY : HVD_ERR_ENGINE;
}

enum hvd_status nccl_comm_result(const struct nccl_comm *comm, void *handle, int result,
                                 const char *what, struct error *err)
{
    if (nccl_check(comm->setup.nccl, result, handle, what, err) == 0)
        return HVD_OK;
    return result == NCCL_REMOTE_ERROR ? HVD_ERR_PEER_LOST : HVD_ERR_ENGINE;
}

enum hvd_status nccl_comm_state(const struct nccl_comm *comm, struct error *err)
{
    int state = NCCL_SUCCESS, result = comm->setup.nccl->state(comm->handle, &state);
    return nccl_comm_result(comm, comm->handle, result != NCCL_SUCCESS ? result : state,
                            "NCCL reports an error", err);
}

static enum hvd_status make_stream(struct nccl_comm *comm, void **stream, int priority,
                                   struct error *err)
{
    int result = comm->setup.gpu->cuda->stream_create(stream, CUDA_STREAM_NON_BLOCKING, priority);
    return nccl_comm_cuda(comm, result, "cuStreamCreateWithPriority", err);
}

enum hvd_status nccl_comm_create(const struct nccl_setup *setup, struct nccl_comm **comm,
                                 struct error *err)
{
    struct nccl_comm *made = mem_alloc(sizeof *made);
    int least = 0, greatest = 0;
    made->setup = *setup;
    enum hvd_status status =
        nccl_comm_cuda(made, setup->gpu->cuda->stream_priorities(&least, &greatest),
                       "cuCtxGetStreamPriorityRange", err);
    if (status == HVD_OK)
        status = make_stream(made, &made->stream, greatest, err);
    if (status == HVD_OK)
        status = make_stream(made, &made->bells, least, err);
    if (status == HVD_OK)
        status = connect_all(setup, &made->handle, err);
    if (status == HVD_OK)
        *comm = made;
    else
        nccl_comm_destroy(made);
    return status;
}

void nccl_comm_abort(struct nccl_comm *comm)
{
    if (comm->abort == NULL)
        comm->abort = abort_begin(comm->setup.nccl, comm->setup.gpu, comm->handle);
}

bool nccl_comm_is_aborted(const struct nccl_comm *comm)
{
    return comm->abort == NULL || atomic_load(&comm->abort->done);
}

void nccl_comm_destroy(struct nccl_comm *comm)
{
    const struct cuda *cuda = comm->setup.gpu->cuda;
    nccl_comm_abort(comm);
    abort_end(comm->abort);
    abort_end(abort_begin(comm->setup.nccl, comm->setup.gpu, comm->alone));
    if (comm->buffer != 0)
        cuda->memory_give(comm->buffer, comm->stream);
    if (comm->stream != NULL)
        cuda->stream_destroy(comm->stream);
    if (comm->bells != NULL)
        cuda->stream_destroy(comm->bells);
    free(comm);
}

enum hvd_status nccl_comm_need_alone(struct nccl_comm *comm, struct error *err)
{
    struct nccl_setup setup = comm->setup;
    if (comm->alone != NULL)
        return HVD_OK;
    setup.rank = 0;
    setup.size = 1;
    int result = setup.nccl->get_id(&setup.id);
    enum hvd_status status = nccl_comm_result(comm, NULL, result, "ncclGetUniqueId", err);
    return status == HVD_OK ? connect_all(&setup, &comm->alone, err) : status;
}

enum hvd_status nccl_comm_reserve(struct nccl_comm *comm, size_t bytes, struct error *err)
{
    const struct cuda *cuda = comm->setup.gpu->cuda;
    if (bytes <= comm->room)
        return HVD_OK;
    if (comm->buffer != 0)
        cuda->memory_give(comm->buffer, comm->stream);
    comm->buffer = 0;
    comm->room = 0;
    int result = cuda->memory_take(&comm->buffer, bytes, comm->stream);
    enum hvd_status status = nccl_comm_cuda(comm, result, "cuMemAllocAsync", err);
    comm->room = status == HVD_OK ? bytes : 0;
    return status;
}
