/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of hvd.h: collectives and handles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loop/checks.h"
#include "loop/library.h"

/* What the program has submitted with one call. */
struct batch {
    enum kind kind;
    const struct hvd_tensor *tensors;
    size_t count; /* at least 1, also without tensors */
    const int64_t *splits;
    int root;
};

/* The next tensor of the program's array, whose elements have the size that the first one says. */
static const struct hvd_tensor *tensor_at(const struct batch *batch, size_t i)
{
    if (batch->tensors == NULL)
        return NULL;
    return (const struct hvd_tensor *)(const void *)((const char *)batch->tensors +
                                                     i * batch->tensors[0].size);
}

static bool has_tensors(enum kind kind)
{
    return kind != KIND_BARRIER && kind != KIND_JOIN;
}

static enum hvd_status check_one(const struct process_set *set, const struct batch *batch, size_t i,
                                 const struct hvd_options *options, struct request *request,
                                 struct submission *token, struct error *err)
{
    struct hvd_tensor tensor;
    struct call call = {.kind = batch->kind,
                        .options = options,
                        .splits = batch->splits,
                        .root = batch->root,
                        .ready = i == 0 ? NULL : (token - 1)->ready};
    if (has_tensors(batch->kind)) {
        if (checks_tensor_copy(tensor_at(batch, i), &tensor, err) != 0)
            return HVD_ERR_ARGUMENT;
        call.tensor = &tensor;
    }
    return checks_call(set, &call, request, token, err);
}

/* Fills all requests, or none. */
static enum hvd_status check_all(const struct process_set *set, const struct batch *batch,
                                 const struct hvd_options *options, struct request *requests,
                                 struct submission *tokens, struct error *err)
{
    struct map names = {0};
    enum hvd_status status = HVD_OK;
    size_t made = 0;
    while (made < batch->count && status == HVD_OK) {
        struct request *request = &requests[made];
        status = check_one(set, batch, made, options, request, &tokens[made], err);
        if (status != HVD_OK)
            break;
        made++;
        if (batch->count == 1)
            break;
        if (map_put(&names, map_text(request->key), request) != NULL) {
            error_set(err, "the name '%.200s' occurs twice", request_name(request));
            status = HVD_ERR_DUPLICATE_NAME;
        }
    }
    map_clear(&names, NULL);
    for (size_t i = 0; i < made && status != HVD_OK; i++)
        request_destroy(&requests[i]);
    return status;
}

/* On failure, nothing was submitted, and the handle is gone. */
static enum hvd_status submit_to(struct world *world, struct process_set *set,
                                 const struct batch *batch, const struct hvd_options *options,
                                 bool kept, hvd_handle *handle, struct error *err)
{
    struct handles *handles = world->handles;
    struct request one,
        *several AUTO_FREE = batch->count == 1 ? NULL : mem_array(batch->count, sizeof *several);
    struct request *requests = batch->count == 1 ? &one : several;
    struct submission *tokens =
        handle_create(handles, batch->count, options->callback, options->context, kept, handle);
    enum hvd_status status = check_all(set, batch, options, requests, tokens, err);
    if (status == HVD_OK)
        status = set_submit(set, requests, tokens, batch->count, err);
    if (status != HVD_OK)
        handle_discard(handles, *handle);
    return status;
}

static enum hvd_status submit_in(struct world *world, const struct batch *batch,
                                 const struct hvd_options *options, hvd_handle *handle,
                                 struct error *err)
{
    struct hvd_options own;
    hvd_handle number = 0;
    if (checks_options_copy(options, &own, err) != 0)
        return HVD_ERR_ARGUMENT;
    if (handle == NULL && own.callback == NULL) {
        error_set(err, "there is neither room for the handle nor a callback");
        return HVD_ERR_ARGUMENT;
    }
    if (batch->count == 0 || (has_tensors(batch->kind) && batch->tensors == NULL)) {
        error_set(err, "there is not a tensor");
        return HVD_ERR_ARGUMENT;
    }
    enum hvd_status status = world_failure(world, err);
    struct process_set *set = sets_hold(&world->sets, own.set);
    if (status == HVD_OK && set == NULL) {
        error_set(err, "there is not a process set with the number %d", own.set);
        status = HVD_ERR_UNKNOWN_SET;
    } else if (status == HVD_OK && set->rank < 0) {
        error_set(err, "this rank is not a member of the process set %d", own.set);
        status = HVD_ERR_NOT_MEMBER;
    }
    if (status == HVD_OK)
        status = submit_to(world, set, batch, &own, handle != NULL, &number, err);
    if (status == HVD_OK && handle != NULL)
        *handle = number;
    set_release(set);
    return status;
}

static int submit(const struct batch *batch, const struct hvd_options *options, hvd_handle *handle)
{
    struct error err;
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    error_init(&err);
    enum hvd_status status = submit_in(world, batch, options, handle, &err);
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

/* The form that blocks. */
static int submit_and_wait(const struct batch *batch, const struct hvd_options *options,
                           struct hvd_result *result)
{
    hvd_handle handle;
    int status = submit(batch, options, &handle);
    return status == HVD_OK ? hvd_wait(handle, -1, result) : status;
}

/* ---- Handles --------------------------------------------------------------------------------- */

int hvd_poll(hvd_handle handle)
{
    struct error err = ERROR_INIT;
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    enum hvd_status status = handle_poll(world->handles, handle, &err);
    return status < 0 ? library_fail(status, "%s", err.text) : status;
}

static void hurry(void *context, int32_t set, const struct submission *submission)
{
    struct process_set *found AUTO_SET = sets_hold(&((struct world *)context)->sets, set);
    if (found != NULL)
        set_hurry(found, submission);
}

/* Of a handle that is not complete. */
static enum hvd_status wait_long(struct world *world, hvd_handle handle, int64_t timeout_ms,
                                 struct results results, struct error *err)
{
    struct handles *handles = world->handles;
    handles_wait_begin(handles); /* before the hurry, which makes others look for it */
    if (timeout_ms != 0)
        handle_pending(handles, handle, hurry, world);
    enum hvd_status status = handle_wait(handles, handle, timeout_ms, results, NULL, err);
    handles_wait_end(handles);
    return status;
}

static int wait_for(hvd_handle handle, int64_t timeout_ms, struct results results)
{
    struct error err;
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    error_init(&err);
    enum hvd_status status;
    if (results.items != NULL && results.items[0].size < sizeof results.items[0].size) {
        error_set(&err, "the size of the result's struct is not set");
        status = HVD_ERR_ARGUMENT;
    } else {
        status = handle_take(world->handles, handle, results, &err);
        if (status == HVD_IN_PROGRESS)
            status = wait_long(world, handle, timeout_ms, results, &err);
    }
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

int hvd_wait(hvd_handle handle, int64_t timeout_ms, struct hvd_result *result)
{
    return wait_for(handle, timeout_ms, (struct results){result, 1});
}

int hvd_wait_grouped(hvd_handle handle, int64_t timeout_ms, struct hvd_result *results,
                     size_t count)
{
    return wait_for(handle, timeout_ms, (struct results){count == 0 ? NULL : results, count});
}

int hvd_result_move(struct hvd_result *result, void *to, size_t bytes, void *stream)
{
    struct error err = ERROR_INIT;
    if (result == NULL || (bytes > 0 && (result->data == NULL || to == NULL)))
        return library_fail(HVD_ERR_ARGUMENT, "the result or its new place is NULL");
    int moved = bytes > 0 ? cuda_move_if_device(result->data, to, bytes, stream, &err) : 0;
    if (moved < 0)
        return library_fail(HVD_ERR_ENGINE, "%s", err.text);
    if (moved > 0)
        result->data = NULL;
    else if (bytes > 0)
        memcpy(to, result->data, bytes);
    hvd_result_free(result);
    return HVD_OK;
}

/* ---- Collectives ----------------------------------------------------------------------------- */

int hvd_allreduce_async(const struct hvd_tensor *tensor, const struct hvd_options *options,
                        hvd_handle *handle)
{
    return submit(&(struct batch){KIND_ALLREDUCE, tensor, 1, NULL, 0}, options, handle);
}

int hvd_allreduce(const struct hvd_tensor *tensor, const struct hvd_options *options)
{
    return submit_and_wait(&(struct batch){KIND_ALLREDUCE, tensor, 1, NULL, 0}, options, NULL);
}

int hvd_grouped_allreduce_async(const struct hvd_tensor *tensors, size_t count,
                                const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_ALLREDUCE, tensors, count, NULL, 0}, options, handle);
}

int hvd_grouped_allreduce(const struct hvd_tensor *tensors, size_t count,
                          const struct hvd_options *options)
{
    return submit_and_wait(&(struct batch){KIND_ALLREDUCE, tensors, count, NULL, 0}, options, NULL);
}

int hvd_allgather_async(const struct hvd_tensor *tensor, const struct hvd_options *options,
                        hvd_handle *handle)
{
    return submit(&(struct batch){KIND_ALLGATHER, tensor, 1, NULL, 0}, options, handle);
}

int hvd_allgather(const struct hvd_tensor *tensor, const struct hvd_options *options,
                  struct hvd_result *result)
{
    return submit_and_wait(&(struct batch){KIND_ALLGATHER, tensor, 1, NULL, 0}, options, result);
}

int hvd_grouped_allgather_async(const struct hvd_tensor *tensors, size_t count,
                                const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_ALLGATHER, tensors, count, NULL, 0}, options, handle);
}

int hvd_grouped_allgather(const struct hvd_tensor *tensors, size_t count,
                          const struct hvd_options *options, struct hvd_result *results)
{
    hvd_handle handle;
    int status = hvd_grouped_allgather_async(tensors, count, options, &handle);
    return status == HVD_OK ? hvd_wait_grouped(handle, -1, results, count) : status;
}

int hvd_broadcast_async(const struct hvd_tensor *tensor, int root,
                        const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_BROADCAST, tensor, 1, NULL, root}, options, handle);
}

int hvd_broadcast(const struct hvd_tensor *tensor, int root, const struct hvd_options *options)
{
    return submit_and_wait(&(struct batch){KIND_BROADCAST, tensor, 1, NULL, root}, options, NULL);
}

int hvd_alltoall_async(const struct hvd_tensor *tensor, const int64_t *splits,
                       const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_ALLTOALL, tensor, 1, splits, 0}, options, handle);
}

int hvd_alltoall(const struct hvd_tensor *tensor, const int64_t *splits,
                 const struct hvd_options *options, struct hvd_result *result)
{
    return submit_and_wait(&(struct batch){KIND_ALLTOALL, tensor, 1, splits, 0}, options, result);
}

int hvd_reducescatter_async(const struct hvd_tensor *tensor, const struct hvd_options *options,
                            hvd_handle *handle)
{
    return submit(&(struct batch){KIND_REDUCESCATTER, tensor, 1, NULL, 0}, options, handle);
}

int hvd_reducescatter(const struct hvd_tensor *tensor, const struct hvd_options *options)
{
    return submit_and_wait(&(struct batch){KIND_REDUCESCATTER, tensor, 1, NULL, 0}, options, NULL);
}

int hvd_grouped_reducescatter_async(const struct hvd_tensor *tensors, size_t count,
                                    const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_REDUCESCATTER, tensors, count, NULL, 0}, options, handle);
}

int hvd_grouped_reducescatter(const struct hvd_tensor *tensors, size_t count,
                              const struct hvd_options *options)
{
    return submit_and_wait(&(struct batch){KIND_REDUCESCATTER, tensors, count, NULL, 0}, options,
                           NULL);
}

int hvd_barrier_async(const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_BARRIER, NULL, 1, NULL, 0}, options, handle);
}

int hvd_barrier(const struct hvd_options *options)
{
    return submit_and_wait(&(struct batch){KIND_BARRIER, NULL, 1, NULL, 0}, options, NULL);
}

int hvd_join_async(const struct hvd_options *options, hvd_handle *handle)
{
    return submit(&(struct batch){KIND_JOIN, NULL, 1, NULL, 0}, options, handle);
}

int hvd_join(const struct hvd_options *options, int *last_joined)
{
    struct hvd_result result = HVD_RESULT_INIT;
    int status = submit_and_wait(&(struct batch){KIND_JOIN, NULL, 1, NULL, 0}, options, &result);
    if (status == HVD_OK && last_joined != NULL)
        *last_joined = result.last_joined;
    return status;
}
