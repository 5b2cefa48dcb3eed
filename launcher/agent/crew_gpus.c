/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_gpus.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/binding/gpu_visible.h"
#include "model/binding/nic_near.h"
#include "node/gpus.h"
#include "node/nics.h"

#define VALUE_MAX ((size_t)16 << 10)

struct crew_gpus {
    const Hvdrun__Prepare *prepare;
    const struct crew_apps *apps;
    struct device_list found, nics;
    const char *name;           /* the variable that shows GPUs of this kind */
    struct gpu_visible visible; /* to the first worker; those of another app may differ */
};

/* What an app of ours sees, which -x may tell it; the caller clears it. */
static void see(const struct crew_gpus *gpus, uint32_t app, struct gpu_visible *visible)
{
    gpu_visible_fill(visible, &gpus->found, crew_apps_getenv(gpus->apps, app, gpus->name));
}

struct crew_gpus *crew_gpus_create(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                                   int told, struct topology *topology)
{
    if (prepare->bind != BIND_GPU && prepare->gpus_per_proc == 0 && !prepare->nic_hints &&
        !prepare->report_bindings)
        return NULL;
    struct crew_gpus *gpus = mem_alloc(sizeof(*gpus));
    gpus->prepare = prepare;
    gpus->apps = apps;
    if (topology != NULL) {
        gpus->found = topology->gpus;
        gpus->nics = topology->nics;
        topology->gpus = topology->nics = (struct device_list){0};
    } else {
        gpus_read("", &gpus->found);
        if (gpus->found.count == 0)
            gpus_fill_unknown(&gpus->found, told);
        if (prepare->nic_hints)
            nics_read("", &gpus->nics);
    }
    enum device_kind kind = gpus->found.count > 0 ? gpus->found.items[0].kind : DEVICE_NVIDIA;
    gpus->name = gpu_visible_name(kind);
    see(gpus, prepare->workers[0]->app, &gpus->visible);
    return gpus;
}

void crew_gpus_destroy(struct crew_gpus *gpus)
{
    if (gpus == NULL)
        return;
    gpu_visible_clear(&gpus->visible);
    device_list_destroy(&gpus->found);
    device_list_destroy(&gpus->nics);
    free(gpus);
}

/* Are `shown` GPUs enough for workers in so many slots? */
static int check_count(const struct crew_gpus *gpus, size_t shown, size_t slots, struct error *err)
{
    size_t each = gpus->prepare->gpus_per_proc;
    if (shown / each >= slots)
        return 0;
    if (shown == 0)
        return error_status(err, STATUS_NO_SLOTS,
                            "--gpus-per-proc %zu: no GPU was found on this host, or %s hides all",
                            each, gpus->name);
    return error_status(err, STATUS_NO_SLOTS,
                        "--gpus-per-proc %zu: %zu workers need %zu GPUs and this host shows %zu; "
                        "start fewer workers on it, or check its %s",
                        each, slots, each * slots, shown, gpus->name);
}

int crew_gpus_check(const struct crew_gpus *gpus, int slots, struct error *err)
{
    const Hvdrun__Prepare *prepare = gpus->prepare;
    if (prepare->gpus_per_proc == 0)
        return 0;
    int result = check_count(gpus, gpus->visible.words.count, (size_t)slots, err);
    uint32_t app = prepare->workers[0]->app;
    for (size_t i = 0; i < prepare->n_workers && result == 0; i++) {
        const Hvdrun__Worker *worker = prepare->workers[i];
        if (worker->app == app)
            continue;
        struct gpu_visible visible;
        see(gpus, worker->app, &visible);
        result = check_count(gpus, visible.words.count, (size_t)worker->slot + 1, err);
        gpu_visible_clear(&visible);
    }
    return result;
}

const struct device_list *crew_gpus_seen(const struct crew_gpus *gpus)
{
    return &gpus->visible.devices;
}

/* The first of the GPUs of a slot, and how many; false: there is none. */
static bool gpus_of(const struct crew_gpus *gpus, size_t slot, size_t *first, size_t *count)
{
    size_t all = gpus == NULL ? 0 : gpus->visible.devices.count;
    *count = gpus->prepare->gpus_per_proc > 0 ? gpus->prepare->gpus_per_proc : 1;
    *first = all == 0 ? 0 : slot * *count % all;
    return all > 0;
}

char *crew_gpus_of(const struct crew_gpus *gpus, size_t slot)
{
    size_t first = 0, count = 0;
    struct buf text = BUF_INIT(VALUE_MAX);
    if (!gpus_of(gpus, slot, &first, &count))
        return NULL;
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, i > 0 ? ",%zu" : "%zu", first + i);
    return buf_take(&text);
}

/* Taken from the list that this worker's own app would see. */
static void put_part(const struct crew_gpus *gpus, const Hvdrun__Worker *worker, struct strv *own)
{
    struct gpu_visible visible;
    see(gpus, worker->app, &visible);
    char *part AUTO_FREE = gpu_visible_part(&visible, worker->slot, gpus->prepare->gpus_per_proc);
    if (part != NULL)
        strv_printf(own, "%s=%s", gpus->name, part);
    gpu_visible_clear(&visible);
}

void crew_gpus_env(const struct crew_gpus *gpus, const Hvdrun__Worker *worker, struct strv *own,
                   struct strv *hints)
{
    size_t first = 0, count = 0;
    if (gpus == NULL)
        return;
    if (gpus->prepare->gpus_per_proc > 0)
        put_part(gpus, worker, own);
    if (!gpus->prepare->nic_hints || !gpus_of(gpus, worker->slot, &first, &count))
        return;
    struct buf nccl AUTO_BUF = BUF_INIT(VALUE_MAX), ucx AUTO_BUF = BUF_INIT(VALUE_MAX);
    nic_near_values(&gpus->nics, &gpus->visible.devices, first, count, &nccl, &ucx);
    if (nccl.length == 0)
        return;
    strv_printf(hints, "NCCL_IB_HCA=%s", buf_text(&nccl));
    strv_printf(hints, "UCX_NET_DEVICES=%s", buf_text(&ucx));
}
