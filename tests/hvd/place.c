/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "worker.h"

enum { DELAY_MS = 30, NON_BLOCKING = 1 };

/* X(member, symbol, parameters) */
/* clang-format off */
#define CUDA_LIST(X)                                                                        \
    X(init, cuInit, (unsigned flags))                                                       \
    X(count, cuDeviceGetCount, (int *count))                                                \
    X(retain, cuDevicePrimaryCtxRetain, (void **context, int device))                       \
    X(release, cuDevicePrimaryCtxRelease_v2, (int device))                                  \
    X(push, cuCtxPushCurrent_v2, (void *context))                                           \
    X(stream_create, cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority)) \
    X(stream_destroy, cuStreamDestroy_v2, (void *stream))                                   \
    X(stream_sync, cuStreamSynchronize, (void *stream))                                     \
    X(call, cuLaunchHostFunc, (void *stream, void (*function)(void *), void *argument))     \
    X(alloc, cuMemAlloc_v2, (uint64_t * pointer, size_t bytes))                             \
    X(free, cuMemFree_v2, (uint64_t pointer))                                               \
    X(put, cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                  \
    X(get, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                        \
    X(copy, cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))
/* clang-format on */

struct place_cuda {
    void *library;
#define MEMBER(member, symbol, parameters) int(*member) parameters;
    CUDA_LIST(MEMBER)
#undef MEMBER
};

static void check(int result, const char *what)
{
    if (result != 0)
        worker_fail("%s: CUDA error %d", what, result);
}

static void find(void *library, const char *symbol, void *member)
{
    void *found = dlsym(library, symbol);
    if (found == NULL)
        worker_fail("libcuda.so.1 does not have %s", symbol);
    memcpy(member, &found, sizeof found);
}

static uint64_t address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

void place_open(struct place *place, bool gpu, int local_rank)
{
    *place = (struct place){.device = -1};
    if (!gpu)
        return;
    struct place_cuda *cuda = place->cuda = mem_alloc(sizeof *cuda);
    int count = 0;
    cuda->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda->library == NULL)
        worker_fail("%s", dlerror());
#define FIND(member, symbol, parameters) find(cuda->library, #symbol, (void *)&cuda->member);
    CUDA_LIST(FIND)
#undef FIND
    check(cuda->init(0), "cuInit");
    check(cuda->count(&count), "cuDeviceGetCount");
    place->device = local_rank % count;
    check(cuda->retain(&place->context, place->device), "cuDevicePrimaryCtxRetain");
}

void place_close(struct place *place)
{
    if (place->cuda == NULL)
        return;
    check(place->cuda->release(place->device), "cuDevicePrimaryCtxRelease");
    free(place->cuda);
    *place = (struct place){.device = -1};
}

void place_enter(const struct place *place)
{
    if (place->cuda != NULL)
        check(place->cuda->push(place->context), "cuCtxPushCurrent");
}

void *place_new(const struct place *place, size_t bytes)
{
    uint64_t memory = 0;
    if (place->cuda == NULL)
        return mem_alloc(bytes);
    if (bytes > 0)
        check(place->cuda->alloc(&memory, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)memory;
}

void place_free(const struct place *place, void *memory)
{
    if (place->cuda == NULL)
        free(memory);
    else if (memory != NULL)
        check(place->cuda->free(address(memory)), "cuMemFree");
}

void place_put(const struct place *place, void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && place->cuda == NULL)
        memcpy(to, from, bytes);
    else if (bytes > 0)
        check(place->cuda->put(address(to), from, bytes), "cuMemcpyHtoD");
}

void place_get(const struct place *place, void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && place->cuda == NULL)
        memcpy(to, from, bytes);
    else if (bytes > 0)
        check(place->cuda->get(to, address(from), bytes), "cuMemcpyDtoH");
}

void *place_stream(const struct place *place)
{
    void *stream = NULL;
    check(place->cuda->stream_create(&stream, NON_BLOCKING, 0), "cuStreamCreateWithPriority");
    return stream;
}

void place_stream_end(const struct place *place, void *stream)
{
    check(place->cuda->stream_destroy(stream), "cuStreamDestroy");
}

void place_sync(const struct place *place, void *stream)
{
    check(place->cuda->stream_sync(stream), "cuStreamSynchronize");
}

static void delay(void *argument)
{
    (void)argument;
    nanosleep(&(struct timespec){.tv_nsec = DELAY_MS * 1000000}, NULL);
}

void place_delay(const struct place *place, void *stream)
{
    check(place->cuda->call(stream, delay, NULL), "cuLaunchHostFunc");
}

void place_copy(const struct place *place, void *stream, void *to, const void *from, size_t bytes)
{
    check(place->cuda->copy(address(to), address(from), bytes, stream), "cuMemcpyDtoDAsync");
}

long place_allocations(const struct place *place)
{
    size_t (*count)(void) = NULL;
    void *found = dlsym(place->cuda->library, "fake_live_allocations");
    memcpy(&count, &found, sizeof found);
    return count == NULL ? -1 : (long)count();
}
