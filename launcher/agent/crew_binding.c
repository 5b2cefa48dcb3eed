/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_binding.h"

#include <stdlib.h>

#include "agent/room_test.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/binding/gpu_visible.h"
#include "model/binding/picture.h"
#include "node/gpus.h"
#include "node/topology.h"

/*
 * The GPUs of a crew's workers. Local rank i is near GPU i of those that the node's
 * CUDA_VISIBLE_DEVICES shows. After the last GPU, the count begins again. With --gpus-per-proc N, a
 * worker has N of them. The environment of a worker names its GPUs and the network adapter next to
 * them.
 */

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
    size_t all = gpus->visible.devices.count;
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

/* Bound by their slots, which no two workers of a node share, of whatever epoch they are. */
static int slots_of(const Hvdrun__Prepare *prepare)
{
    uint32_t slots = prepare->local_size;
    for (size_t i = 0; i < prepare->n_workers; i++)
        slots = prepare->workers[i]->slot >= slots ? prepare->workers[i]->slot + 1 : slots;
    return (int)slots;
}

/* By slot; the rankfile's texts, borrowed. */
static char **lists_of(const Hvdrun__Prepare *prepare, int slots)
{
    char **lists = mem_array((size_t)slots, sizeof(*lists));
    for (size_t i = 0; i < prepare->n_workers; i++)
        lists[prepare->workers[i]->slot] = prepare->workers[i]->cpus;
    return lists;
}

static bool has_lists(const Hvdrun__Prepare *prepare)
{
    bool any = false;
    for (size_t i = 0; i < prepare->n_workers; i++)
        any = any || prepare->workers[i]->cpus[0] != '\0';
    return any;
}

/* The lines of --report-bindings. */
static void draw(const Hvdrun__Prepare *prepare, const struct topology *topology,
                 const struct binding *binding, struct crew_binding *out)
{
    size_t count = prepare->n_workers;
    struct binding_worker *workers AUTO_FREE = mem_array(count, sizeof(*workers));
    AUTO_STRV struct strv gpus = STRV_INIT;
    for (size_t i = 0; i < count; i++) {
        char *near = crew_gpus_of(out->gpus, prepare->workers[i]->slot);
        if (near != NULL)
            strv_add_take(&gpus, near);
        workers[i] =
            (struct binding_worker){.rank = prepare->first_seat + prepare->workers[i]->rank,
                                    .mask = &binding->ranks[prepare->workers[i]->slot],
                                    .gpus = near};
    }
    const char *unit = bind_unit_name((enum bind_unit)prepare->bind);
    if (has_lists(prepare))
        unit = "the rankfile's CPUs";
    else if (prepare->bind == BIND_NONE && prepare->cpus_per_proc > 0)
        unit = bind_unit_name(BIND_CORE);
    binding_report(topology, crew_gpus_seen(out->gpus), unit, workers, count, &out->pictures);
}

static void warn(const struct log *log, const Hvdrun__Prepare *prepare,
                 const struct binding *binding)
{
    if (binding->narrow)
        log_warning(log,
                    "--cpus-per-proc %u: a worker has fewer cores, because there are no more where "
                    "it is bound",
                    prepare->cpus_per_proc);
    else if (binding->sharing > 0)
        log_warning(log,
                    "%zu of %zu workers share their cores with others: hvdrun may use only %zu",
                    binding->sharing, binding->count, binding->cores);
    if (binding->far > 0)
        log_warning(log,
                    "hvdrun may not use any core near the GPU of %zu workers: it binds them to all "
                    "cores that it may use",
                    binding->far);
}

/* hwloc says nothing of a description that it cannot read, and looks at this machine. With
 * HWLOC_THISSYSTEM the description is meant to be this machine. */
static bool is_description_lost(const struct topology *topology)
{
    const char *synthetic = getenv("HWLOC_SYNTHETIC"), *file = getenv("HWLOC_XMLFILE");
    bool described = (synthetic != NULL && *synthetic != '\0') || (file != NULL && *file != '\0');
    return described && !topology->simulated && getenv("HWLOC_THISSYSTEM") == NULL;
}

static int bind_to(const struct log *log, const Hvdrun__Prepare *prepare,
                   const struct topology *topology, bool wanted, struct crew_binding *out,
                   struct error *err)
{
    int slots = slots_of(prepare);
    char **lists AUTO_FREE = lists_of(prepare, slots);
    struct binding_request request = {.unit = (enum bind_unit)prepare->bind,
                                      .slots = slots,
                                      .cpus_per_proc = (int)prepare->cpus_per_proc,
                                      .gpus_per_proc = (int)prepare->gpus_per_proc,
                                      .round_numa = prepare->map_unit == 1,
                                      .cpu_lists = lists};
    if (out->gpus != NULL)
        request.gpus = crew_gpus_seen(out->gpus);
    struct binding *binding = binding_create(topology, &request, err);
    if (binding == NULL)
        return -1;
    if (prepare->report_bindings)
        draw(prepare, topology, binding, out);
    if (wanted)
        warn(log, prepare, binding);
    if (wanted && topology->simulated)
        log_warning(log, "HWLOC_SYNTHETIC or HWLOC_XMLFILE describes another machine: "
                         "hvdrun does not bind workers");
    if (is_description_lost(topology))
        log_warning(log, "hwloc cannot read the description in HWLOC_SYNTHETIC or "
                         "HWLOC_XMLFILE: hvdrun uses the topology of this machine");
    if (wanted && !topology->simulated)
        out->cpus = binding;
    else
        binding_destroy(binding);
    return 0;
}

int crew_binding_fill(struct crew_binding *out, const struct crew_config *config,
                      const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                      struct error *err)
{
    struct topology topology = {.count = 0};
    if (prepare->bind > BIND_GPU)
        return error_set(err, "a binding of unknown kind %u", prepare->bind);
    if (prepare->n_workers == 0) /* what this host lacks is nobody's trouble */
        return 0;
    bool wanted = prepare->bind != BIND_NONE || prepare->cpus_per_proc > 0 || has_lists(prepare);
    bool needs_topology = wanted || prepare->report_bindings;
    if (needs_topology) {
        const char *module = modules_find(config->modules, "hvdrun-topology.so", err);
        if (module == NULL || topology_read(module, &topology, err) < 0)
            return -1;
    }
    out->gpus = crew_gpus_create(prepare, apps, config->facts->gpus_told,
                                 topology.simulated ? &topology : NULL);
    int result = out->gpus == NULL ? 0 : crew_gpus_check(out->gpus, slots_of(prepare), err);
    if (result == 0 && needs_topology)
        result = bind_to(&config->post->log, prepare, &topology, wanted, out, err);
    topology_destroy(&topology);
    return result;
}

void crew_binding_destroy(struct crew_binding *binding)
{
    binding_destroy(binding->cpus);
    crew_gpus_destroy(binding->gpus);
    strv_destroy(&binding->pictures);
    *binding = (struct crew_binding){.cpus = NULL};
}

void crew_binding_env(const struct crew_binding *binding, int cpu_quota, int cpu_ranks,
                      const Hvdrun__Worker *worker, struct strv *hints)
{
    if (binding->cpus == NULL)
        return;
    int threads = binding->cpus->threads[worker->slot];
    if (cpu_quota > 0 && cpu_ranks > 0 && cpu_quota / cpu_ranks < threads)
        threads = cpu_quota / cpu_ranks > 0 ? cpu_quota / cpu_ranks : 1;
    strv_printf(hints, "OMP_NUM_THREADS=%d", threads);
}
