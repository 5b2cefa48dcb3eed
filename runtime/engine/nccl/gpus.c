/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/gpus.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

struct gpus {
    pthread_mutex_t lock; /* guards all but a `found` that is true */
    atomic_bool found;
    struct cuda cuda;
    unsigned long long loads; /* libraries that were loaded when CUDA was not found */
    struct gpu **items;
    size_t count, room;
};

struct gpus *gpus_create(void)
{
    struct gpus *gpus = mem_alloc(sizeof *gpus);
    pthread_mutex_init(&gpus->lock, NULL);
    atomic_init(&gpus->found, false);
    return gpus;
}

static void gpu_destroy(struct gpu *gpu)
{
    if (gpu_enter(gpu, NULL) == 0) {
        for (size_t i = 0; i < gpu->count; i++)
            gpu->cuda->event_destroy(gpu->events[i]);
        gpu_leave(gpu);
    }
    gpu->cuda->context_release(gpu->device);
    pthread_mutex_destroy(&gpu->lock);
    free(gpu->events);
    free(gpu);
}

void gpus_destroy(struct gpus *gpus)
{
    if (gpus == NULL)
        return;
    for (size_t i = 0; i < gpus->count; i++)
        gpu_destroy(gpus->items[i]);
    free(gpus->items);
    cuda_forget(&gpus->cuda);
    pthread_mutex_destroy(&gpus->lock);
    free(gpus);
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

/* Looks again only if the process has loaded a library since. */
static bool find_cuda(struct gpus *gpus)
{
    if (atomic_load_explicit(&gpus->found, memory_order_acquire))
        return true;
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    pthread_mutex_lock(&gpus->lock);
    if (!atomic_load(&gpus->found) && loads != gpus->loads) {
        gpus->loads = loads;
        if (cuda_find(&gpus->cuda, NULL) == 1)
            atomic_store_explicit(&gpus->found, true, memory_order_release);
    }
    bool found = atomic_load(&gpus->found);
    pthread_mutex_unlock(&gpus->lock);
    return found;
}

int gpus_find(struct gpus *gpus, const void *pointer)
{
    return pointer != NULL && find_cuda(gpus) ? cuda_device_of(&gpus->cuda, pointer) : -1;
}

static struct gpu *make(const struct cuda *cuda, int number, struct error *err)
{
    struct gpu *gpu = MEM_NEW((struct gpu){.cuda = cuda, .number = number});
    if (cuda_check(cuda, cuda->device_get(&gpu->device, number), "cuDeviceGet", err) != 0 ||
        cuda_check(cuda, cuda->context_retain(&gpu->context, gpu->device),
                   "cuDevicePrimaryCtxRetain", err) != 0) {
        free(gpu);
        return NULL;
    }
    pthread_mutex_init(&gpu->lock, NULL);
    return gpu;
}

/* With the lock held. */
static struct gpu *known(const struct gpus *gpus, int number)
{
    for (size_t i = 0; i < gpus->count; i++)
        if (gpus->items[i]->number == number)
            return gpus->items[i];
    return NULL;
}

struct gpu *gpus_get(struct gpus *gpus, int number, struct error *err)
{
    if (!find_cuda(gpus)) {
        struct cuda cuda;
        if (cuda_find(&cuda, err) == 0) /* otherwise it is too old, and the error says so */
            error_set(err, "this process has not loaded %s", CUDA_LIBRARY);
        cuda_forget(&cuda);
        return NULL;
    }
    pthread_mutex_lock(&gpus->lock);
    struct gpu *gpu = known(gpus, number);
    if (gpu == NULL) {
        gpu = make(&gpus->cuda, number, err);
        if (gpu != NULL)
            MEM_ADD_ROOM(gpus->items, gpus->count, gpus->room) = gpu;
    }
    pthread_mutex_unlock(&gpus->lock);
    return gpu;
}

int gpu_enter(const struct gpu *gpu, struct error *err)
{
    return cuda_check(gpu->cuda, gpu->cuda->context_push(gpu->context), "cuCtxPushCurrent", err);
}

void gpu_leave(const struct gpu *gpu)
{
    void *context;
    gpu->cuda->context_pop(&context);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

static int take_event(struct gpu *gpu, void **event, struct error *err)
{
    *event = NULL;
    pthread_mutex_lock(&gpu->lock);
    if (gpu->count > 0)
        *event = gpu->events[--gpu->count];
    pthread_mutex_unlock(&gpu->lock);
    return *event != NULL
               ? 0
               : cuda_check(gpu->cuda, gpu->cuda->event_create(event, CUDA_EVENT_DISABLE_TIMING),
                            "cuEventCreate", err);
}

static void give_event(struct gpu *gpu, void *event)
{
    pthread_mutex_lock(&gpu->lock);
    MEM_ADD_ROOM(gpu->events, gpu->count, gpu->room) = event;
    pthread_mutex_unlock(&gpu->lock);
}

struct gpu_mark *gpu_mark(struct gpu *gpu, void *stream, struct error *err)
{
    const struct cuda *cuda = gpu->cuda;
    struct gpu_mark *mark = NULL;
    void *event;
    if (gpu_enter(gpu, err) != 0)
        return NULL;
    if (take_event(gpu, &event, err) == 0) {
        pthread_mutex_lock(&gpu->lock); /* numbers have the order of the marks */
        int result = cuda->event_record(event, stream);
        uint64_t number = ++gpu->marks;
        pthread_mutex_unlock(&gpu->lock);
        if (cuda_check(cuda, result, "cuEventRecord", err) == 0) {
            mark = MEM_NEW((struct gpu_mark){gpu, event, stream, number, 1});
        } else {
            give_event(gpu, event);
        }
    }
    gpu_leave(gpu);
    return mark;
}

struct gpu_mark *gpu_mark_hold(struct gpu_mark *mark)
{
    mark->holders++;
    return mark;
}

void gpu_mark_release(struct gpu_mark *mark)
{
    if (mark == NULL || --mark->holders > 0)
        return;
    give_event(mark->gpu, mark->event);
    free(mark);
}
