/* SPDX-License-Identifier: Apache-2.0 */
#include "features/gpu_free/gpu_free.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

#define LIMIT_MS 60000
#define LIMIT_MAX_MS 3600000
#define MIB ((uint64_t)1 << 20)

static int wrong(const char *text, struct error *err)
{
    return error_usage(err,
                       "'%s' is not a share of GPU memory; expected 1%% to 100%%, with the longest "
                       "time to wait for it, as in 90%%:60s (at most 1h)",
                       text);
}

int gpu_free_parse(const char *text, struct gpu_free_limit *out, struct error *err)
{
    const char *colon = strchr(text, ':');
    size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    int64_t limit_ms = LIMIT_MS;
    double percent;
    if (length < 2 || text[length - 1] != '%')
        return wrong(text, err);
    char *number AUTO_FREE = mem_strndup(text, length - 1);
    if (parse_double(number, 1, 100, &percent, NULL) < 0 ||
        (colon != NULL && parse_duration_ms(colon + 1, &limit_ms, NULL) < 0) ||
        limit_ms > LIMIT_MAX_MS)
        return wrong(text, err);
    *out = (struct gpu_free_limit){percent, limit_ms};
    return 0;
}

/* The process that holds most of it; NULL: the driver names none. */
static const Hvdrun__GpuProcess *largest(const Hvdrun__GpuHealth *gpu)
{
    const Hvdrun__GpuProcess *found = NULL;
    for (size_t i = 0; i < gpu->n_processes; i++) {
        const Hvdrun__GpuProcess *one = gpu->processes[i];
        if (found == NULL || (one->has_memory && one->memory_bytes > found->memory_bytes))
            found = one;
    }
    return found;
}

static void name_holder(const Hvdrun__GpuHealth *gpu, struct buf *out)
{
    const Hvdrun__GpuProcess *process = largest(gpu);
    if (process == NULL) {
        buf_printf(out, "%" PRIu64 " MiB are in use, and hvdrun cannot see by which process",
                   gpu->memory_used_bytes / MIB);
        return;
    }
    buf_printf(out, "%s (pid %u, user %s) holds ",
               process->name[0] == '\0' ? "a process" : process->name, process->pid,
               process->user[0] == '\0' ? "unknown" : process->user);
    if (process->has_memory)
        buf_printf(out, "%" PRIu64 " MiB", process->memory_bytes / MIB);
    else
        buf_puts(out, "some of it");
    if (gpu->n_processes > 1)
        buf_printf(out, ", and %zu more", gpu->n_processes - 1);
}

bool gpu_free_lacks(const Hvdrun__GpuHealths *gpus, const char *host, double percent,
                    struct buf *out)
{
    bool lacks = false;
    for (size_t i = 0; i < gpus->n_gpus; i++) {
        const Hvdrun__GpuHealth *gpu = gpus->gpus[i];
        double total = (double)gpu->memory_bytes, used = (double)gpu->memory_used_bytes;
        double free = total > 0 && used <= total ? (total - used) / total * 100 : 100;
        if (!gpu->has_memory || free >= percent)
            continue;
        lacks = true;
        buf_printf(out, "%sGPU %u of %s has only %.0f %% of its memory free: ",
                   out->length > 0 ? "; " : "", gpu->index, host, free);
        name_holder(gpu, out);
    }
    return lacks;
}
