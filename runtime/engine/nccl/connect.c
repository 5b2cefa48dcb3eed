/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/connect.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define STEP_NS 5000000 /* how often it asks `stop` */
#define NS_PER_S 1000000000

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
    struct attempt *attempt = mem_alloc(sizeof *attempt);
    *attempt = (struct attempt){.cuda = *setup->gpu->cuda,
                                .nccl = *setup->nccl,
                                .device = setup->gpu->device,
                                .rank = setup->rank,
                                .size = setup->size,
                                .id = setup->id,
                                .err = ERROR_INIT};
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

enum hvd_status nccl_connect(const struct nccl_setup *setup, void **handle, struct error *err)
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

struct nccl_abort *nccl_abort_begin(const struct nccl *nccl, const struct gpu *gpu, void *handle)
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

bool nccl_abort_is_done(struct nccl_abort *abort)
{
    return abort == NULL || atomic_load(&abort->done);
}

void nccl_abort_end(struct nccl_abort *abort)
{
    if (abort == NULL)
        return;
    if (abort->started)
        pthread_join(abort->thread, NULL);
    free(abort);
}
