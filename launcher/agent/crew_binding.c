/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_binding.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/binding/picture.h"
#include "node/topology.h"

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
        workers[i] = (struct binding_worker){.rank = prepare->workers[i]->rank,
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

static void warn(const struct crew_binding_request *request, const struct binding *binding)
{
    const struct log *log = request->log;
    if (binding->narrow)
        log_warning(log,
                    "--cpus-per-proc %u: a worker has fewer cores, because there are no more where "
                    "it is bound",
                    request->prepare->cpus_per_proc);
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

static int bind_to(const struct crew_binding_request *asked, const struct topology *topology,
                   bool wanted, struct crew_binding *out, struct error *err)
{
    const Hvdrun__Prepare *prepare = asked->prepare;
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
        warn(asked, binding);
    if (wanted && topology->simulated)
        log_warning(asked->log, "HWLOC_SYNTHETIC or HWLOC_XMLFILE describes another machine: "
                                "hvdrun does not bind workers");
    if (is_description_lost(topology))
        log_warning(asked->log, "hwloc cannot read the description in HWLOC_SYNTHETIC or "
                                "HWLOC_XMLFILE: hvdrun uses the topology of this machine");
    if (wanted && !topology->simulated)
        out->cpus = binding;
    else
        binding_destroy(binding);
    return 0;
}

int crew_binding_fill(struct crew_binding *out, const struct crew_binding_request *request,
                      struct error *err)
{
    const Hvdrun__Prepare *prepare = request->prepare;
    struct topology topology = {.count = 0};
    if (prepare->bind > BIND_GPU)
        return error_set(err, "a binding of unknown kind %u", prepare->bind);
    bool wanted = prepare->bind != BIND_NONE || prepare->cpus_per_proc > 0 || has_lists(prepare);
    bool needs_topology = wanted || prepare->report_bindings;
    if (needs_topology) {
        const char *module = modules_find(request->modules, "hvdrun-topology.so", err);
        if (module == NULL || topology_read(module, &topology, err) < 0)
            return -1;
    }
    out->gpus = crew_gpus_create(prepare, request->apps, request->facts->gpus_told,
                                 topology.simulated ? &topology : NULL);
    int result = out->gpus == NULL ? 0 : crew_gpus_check(out->gpus, slots_of(prepare), err);
    if (result == 0 && needs_topology)
        result = bind_to(request, &topology, wanted, out, err);
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
