/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1: see fake.h. The functions have the names and parameters of CUDA's driver. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/nccl/libraries.h"
#include "fake.h"
#include "memory.h"
#include "streams.h"

enum { DEVICES = 8, STACK = 8, ERROR_INVALID = 1, ERROR_UNKNOWN = 999 };

struct context {
    int device;
    struct stream *stream; /* the default one */
};

static struct context contexts[DEVICES] = {{0, NULL}, {1, NULL}, {2, NULL}, {3, NULL},
                                           {4, NULL}, {5, NULL}, {6, NULL}, {7, NULL}};
static _Thread_local struct context *stack[STACK];
static _Thread_local int depth;
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;

#define FAULTS(function)                       \
    if (fake_fault("FAKE_GPU_FAIL", function)) \
    return ERROR_UNKNOWN

/* Declares and defines a function, which -Wmissing-prototypes wants. */
#define FUNCTION(name, parameters) \
    FAKE_API int name parameters;  \
    int name parameters

static struct context *current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

static struct stream *stream_of(void *stream)
{
    struct context *context = current();
    if (stream != NULL || context == NULL)
        return stream;
    pthread_mutex_lock(&default_lock);
    if (context->stream == NULL)
        context->stream = stream_new();
    pthread_mutex_unlock(&default_lock);
    return context->stream;
}

FUNCTION(cuInit, (unsigned flags))
{
    return flags == 0 ? CUDA_SUCCESS : ERROR_INVALID;
}

FUNCTION(cuDeviceGetCount, (int *count))
{
    *count = DEVICES;
    return CUDA_SUCCESS;
}

FUNCTION(cuGetErrorString, (int result, const char **text))
{
    *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "a fault of the test";
    return CUDA_SUCCESS;
}

FUNCTION(cuDeviceGet, (int *device, int ordinal))
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < DEVICES ? CUDA_SUCCESS : ERROR_INVALID;
}

FUNCTION(cuDevicePrimaryCtxRetain, (void **context, int device))
{
    FAULTS("cuDevicePrimaryCtxRetain");
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

FUNCTION(cuDevicePrimaryCtxRelease_v2, (int device))
{
    return device >= 0 && device < DEVICES ? CUDA_SUCCESS : ERROR_INVALID;
}

FUNCTION(cuCtxPushCurrent_v2, (void *context))
{
    if (depth == STACK)
        return ERROR_INVALID;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

FUNCTION(cuCtxPopCurrent_v2, (void **context))
{
    if (depth == 0)
        return ERROR_INVALID;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

FUNCTION(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
    *least = 0;
    *greatest = -5;
    return current() != NULL ? CUDA_SUCCESS : ERROR_INVALID;
}

FUNCTION(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority))
{
    FAULTS("cuStreamCreateWithPriority");
    if (current() == NULL || flags > 1 || priority > 0)
        return ERROR_INVALID;
    *stream = stream_new();
    return CUDA_SUCCESS;
}

FUNCTION(cuStreamDestroy_v2, (void *stream))
{
    stream_end(stream);
    return CUDA_SUCCESS;
}

FUNCTION(cuStreamSynchronize, (void *stream))
{
    stream_sync(stream_of(stream));
    return CUDA_SUCCESS;
}

FUNCTION(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))
{
    FAULTS("cuStreamWaitEvent");
    if (flags != 0)
        return ERROR_INVALID;
    event_wait(event, stream_of(stream));
    return CUDA_SUCCESS;
}

FUNCTION(cuLaunchHostFunc, (void *stream, void (*function)(void *), void *argument))
{
    FAULTS("cuLaunchHostFunc");
    fake_stream_add(stream_of(stream), function, argument);
    return CUDA_SUCCESS;
}

FUNCTION(cuEventCreate, (void **event, unsigned flags))
{
    FAULTS("cuEventCreate");
    if (current() == NULL || flags != CUDA_EVENT_DISABLE_TIMING)
        return ERROR_INVALID;
    *event = event_new();
    return CUDA_SUCCESS;
}

FUNCTION(cuEventDestroy_v2, (void *event))
{
    event_free(event);
    return CUDA_SUCCESS;
}

FUNCTION(cuEventRecord, (void *event, void *stream))
{
    FAULTS("cuEventRecord");
    if (stream_of(stream) == NULL)
        return ERROR_INVALID;
    event_record(event, stream_of(stream));
    return CUDA_SUCCESS;
}

FUNCTION(cuEventQuery, (void *event))
{
    FAULTS("cuEventQuery");
    return event_done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

FUNCTION(cuPointerGetAttributes,
         (unsigned count, const int *attributes, void **data, uint64_t pointer))
{
    int device = memory_device(pointer);
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == CUDA_POINTER_MEMORY_TYPE)
            *(unsigned *)data[i] = device < 0 ? 0 : CUDA_MEMORY_TYPE_DEVICE;
        else if (attributes[i] == CUDA_POINTER_DEVICE_ORDINAL)
            *(int *)data[i] = device < 0 ? -2 : device;
        else
            return ERROR_INVALID;
    }
    return CUDA_SUCCESS;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

FUNCTION(cuMemAlloc_v2, (uint64_t * pointer, size_t bytes))
{
    if (current() == NULL)
        return ERROR_INVALID;
    *pointer = memory_new(current()->device, bytes);
    return *pointer != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

FUNCTION(cuMemFree_v2, (uint64_t pointer))
{
    return memory_free(pointer) ? CUDA_SUCCESS : ERROR_INVALID;
}

FUNCTION(cuMemAllocAsync, (uint64_t * pointer, size_t bytes, void *stream))
{
    if (fake_fault("FAKE_GPU_FAIL", "cuMemAllocAsync"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (void)stream;
    return cuMemAlloc_v2(pointer, bytes);
}

static void free_later(void *argument)
{
    memory_free((uint64_t)(uintptr_t)argument);
}

FUNCTION(cuMemFreeAsync, (uint64_t pointer, void *stream))
{
    if (memory_device(pointer) < 0)
        return ERROR_INVALID;
    fake_stream_add(stream_of(stream), free_later, (void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

struct copy {
    void *to;
    const void *from; /* NULL: set the bytes */
    size_t bytes;
    unsigned char byte;
};

static void copy_later(void *argument)
{
    struct copy *copy = argument;
    if (copy->from != NULL)
        memmove(copy->to, copy->from, copy->bytes);
    else
        memset(copy->to, copy->byte, copy->bytes);
    free(copy);
}

static void add_copy(void *stream, struct copy copy)
{
    fake_stream_add(stream_of(stream), copy_later, mem_dup(&copy, sizeof copy));
}

FUNCTION(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))
{
    FAULTS("cuMemcpyDtoDAsync_v2");
    if (memory_device(to) < 0 || memory_device(from) < 0)
        return ERROR_INVALID;
    add_copy(stream, (struct copy){fake_shadow((void *)(uintptr_t)to),
                                   fake_shadow((void *)(uintptr_t)from), bytes, 0});
    return CUDA_SUCCESS;
}

/* Host memory is pageable here, so the first of these waits, and the second one copies it first. */
FUNCTION(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))
{
    FAULTS("cuMemcpyDtoHAsync_v2");
    if (memory_device(from) < 0)
        return ERROR_INVALID;
    stream_sync(stream_of(stream));
    memcpy(to, fake_shadow((void *)(uintptr_t)from), bytes);
    return CUDA_SUCCESS;
}

static void free_source(void *argument)
{
    free(argument);
}

FUNCTION(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))
{
    FAULTS("cuMemcpyHtoDAsync_v2");
    if (memory_device(to) < 0)
        return ERROR_INVALID;
    void *source = mem_dup(from, bytes);
    add_copy(stream, (struct copy){fake_shadow((void *)(uintptr_t)to), source, bytes, 0});
    fake_stream_add(stream_of(stream), free_source, source);
    return CUDA_SUCCESS;
}

FUNCTION(cuMemsetD8Async, (uint64_t to, unsigned char byte, size_t bytes, void *stream))
{
    if (memory_device(to) < 0)
        return ERROR_INVALID;
    add_copy(stream, (struct copy){fake_shadow((void *)(uintptr_t)to), NULL, bytes, byte});
    return CUDA_SUCCESS;
}

/* These two wait for the default stream. */
FUNCTION(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))
{
    stream_sync(stream_of(NULL));
    memcpy(fake_shadow((void *)(uintptr_t)to), from, bytes);
    return CUDA_SUCCESS;
}

FUNCTION(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))
{
    stream_sync(stream_of(NULL));
    memcpy(to, fake_shadow((void *)(uintptr_t)from), bytes);
    return CUDA_SUCCESS;
}
