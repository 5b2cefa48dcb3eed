/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu_owners.h"

#include <stdlib.h>

#include "base/mem.h"
#include "node/usage.h"

#define DEPTH_MAX 64 /* of a worker's tree of processes */

/* A worker leads a session of its own, under its pid. */
bool process_seat(const struct crews *crews, pid_t pid, struct buf *scratch, uint32_t *seat)
{
    struct process_usage found;
    for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
        if (crews_seat_of(crews, pid, seat))
            return true;
        if (!process_usage_read(pid, scratch, &found))
            return false;
        if (crews_seat_of(crews, (pid_t)found.stat.session, seat))
            return true;
        pid = (pid_t)found.stat.parent;
    }
    return false;
}

struct list {
    struct gpu_owner *items;
    size_t count;
};

static void add(struct list *list, uint32_t seat, uint32_t gpu, const Hvdrun__GpuProcess *process)
{
    struct gpu_owner *owner = NULL;
    for (size_t i = 0; i < list->count && owner == NULL; i++) {
        if (list->items[i].seat == seat && list->items[i].gpu == gpu)
            owner = &list->items[i];
    }
    if (owner == NULL) {
        list->items = mem_resize_array(list->items, list->count + 1, sizeof(*list->items));
        owner = &list->items[list->count++];
        *owner = (struct gpu_owner){.seat = seat, .gpu = gpu};
    }
    owner->has_memory = owner->has_memory || process->has_memory;
    owner->memory_bytes += process->memory_bytes;
}

static int by_seat(const void *a, const void *b)
{
    const struct gpu_owner *first = a, *second = b;
    if (first->seat != second->seat)
        return first->seat < second->seat ? -1 : 1;
    return (first->gpu > second->gpu) - (first->gpu < second->gpu);
}

size_t gpu_owners_find(const struct crews *crews, const Hvdrun__GpuUsages *gpus,
                       struct gpu_owner **out)
{
    struct buf scratch AUTO_BUF = BUF_INIT(USAGE_TEXT_MAX);
    struct list list = {.items = NULL};
    for (size_t i = 0; gpus != NULL && i < gpus->n_gpus; i++) {
        const Hvdrun__GpuUsage *gpu = gpus->gpus[i];
        for (size_t j = 0; j < gpu->n_processes; j++) {
            uint32_t seat;
            if (process_seat(crews, (pid_t)gpu->processes[j]->pid, &scratch, &seat))
                add(&list, seat, (uint32_t)i, gpu->processes[j]);
        }
    }
    if (list.count > 1)
        qsort(list.items, list.count, sizeof(*list.items), by_seat);
    *out = list.items;
    return list.count;
}
