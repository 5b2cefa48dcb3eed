/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/binding.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "model/binding/topology.h"

/*
 * The CPUs that a rankfile gives to a rank, in Open MPI's notation. `0-3,8` are cores by their
 * logical numbers. These count over the whole machine, in the order of packages and memory nodes,
 * and also cores that are not ours. `1:0-2` are cores of a package by their number in it; after a
 * comma the package stays the same. `*` is all cores. `;` separates like `,`. Pure.
 */

/* Numbers from..to of the cores of a package, or of all packages (-1). */
struct span {
    long package, from, to;
};

static int bad(const char *text, const char *why, struct error *err)
{
    return error_usage(err, "the rankfile's CPUs '%s': %s", text, why);
}

/* false: no number here, or one that no machine has. */
static bool take_number(const char **at, long *number)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**at))
        return false;
    *number = strtol(*at, &end, 10);
    *at = end;
    return *number <= CPU_NUMBER_MAX;
}

/* One part between commas; the package stays for the next one. */
static bool take_span(const char **at, struct span *span)
{
    const char *start = *at;
    long number = 0;
    if (take_number(at, &number) && **at == ':') {
        span->package = number;
        ++*at;
    } else {
        *at = start;
    }
    if (**at == '*') {
        ++*at;
        span->from = 0;
        span->to = LONG_MAX;
        return true;
    }
    if (!take_number(at, &span->from))
        return false;
    span->to = span->from;
    if (**at == '-') {
        ++*at;
        return take_number(at, &span->to) && span->to >= span->from;
    }
    return true;
}

/* Adds what is ours of a span; false: one of its cores does not exist, or is not ours. */
static bool add_span(const struct span *span, const struct topology *topology,
                     struct cpu_mask *mask)
{
    long core = -1, package = -1, found = 0, ours = 0;
    bool counted = false;
    for (size_t i = 0; i < topology->count; i++) {
        const struct topology_cpu *cpu = &topology->cpus[i];
        bool next_package = i == 0 || cpu->package != cpu[-1].package;
        bool next_core = i == 0 || cpu->core != cpu[-1].core;
        package += next_package;
        core = next_package && span->package >= 0 ? 0 : core + next_core;
        if ((span->package >= 0 && span->package != package) || core < span->from ||
            core > span->to)
            continue;
        found += next_core;
        counted = counted && !next_core;
        ours += cpu->allowed && !counted;
        counted = counted || cpu->allowed;
        if (cpu->allowed)
            cpu_mask_set(mask, cpu->cpu);
    }
    if (span->to == LONG_MAX)
        return ours > 0;
    return ours == found && found == span->to - span->from + 1;
}

int binding_cpus_parse(const char *text, const struct topology *topology, struct cpu_mask *mask,
                       struct error *err)
{
    struct span span = {.package = -1};
    for (const char *at = text;;) {
        if (!take_span(&at, &span) || (*at != '\0' && *at != ',' && *at != ';'))
            return bad(text, "expected cores such as 0-3,8 or package:cores such as 1:0-2", err);
        if (topology != NULL && !add_span(&span, topology, mask))
            return bad(text,
                       "this host does not have all of these cores, or hvdrun may not use them",
                       err);
        if (*at == '\0')
            break;
        at++;
    }
    if (topology != NULL && cpu_mask_count(mask) == 0)
        return bad(text, "hvdrun may not use any of these cores", err);
    return 0;
}

/* The CPUs of each slot, by the rule of --bind-to. */

/* A core with at least one CPU that we may use; `first` and `count`: where its CPUs are. */
struct core {
    size_t first, count;
    int l3, numa, package;
    int users;   /* workers that are bound to it so far */
    bool inside; /* scratch: of the part in which cores are being picked */
};

struct maker {
    const struct topology *topology;
    const struct binding_request *request;
    struct core *cores;
    size_t core_count;
    struct binding *binding;
};

/* Parts of the machine, from small to large. */
enum level { LEVEL_L3, LEVEL_NUMA, LEVEL_PACKAGE, LEVEL_MACHINE };

static int part_of(const struct core *core, enum level level)
{
    switch (level) {
    case LEVEL_L3: return core->l3;
    case LEVEL_NUMA: return core->numa;
    case LEVEL_PACKAGE: return core->package;
    case LEVEL_MACHINE: break;
    }
    return 0;
}

static void list_cores(struct maker *maker)
{
    const struct topology *topology = maker->topology;
    maker->cores = mem_array(topology->count, sizeof(*maker->cores));
    for (size_t i = 0; i < topology->count;) {
        const struct topology_cpu *cpu = &topology->cpus[i];
        struct core core = {.first = i, .l3 = cpu->l3, .numa = cpu->numa, .package = cpu->package};
        bool ours = false;
        for (; i < topology->count && topology->cpus[i].core == cpu->core; i++, core.count++)
            ours = ours || topology->cpus[i].allowed;
        if (ours)
            maker->cores[maker->core_count++] = core;
    }
}

/* The parts of a level that have a core, in the machine's order; returns their number. Going round
 * the memory nodes, the first part of each of them comes before the second of any. */
static size_t list_parts(const struct maker *maker, enum level level, int *parts)
{
    size_t count = 0;
    int *numas AUTO_FREE = mem_array(maker->core_count, sizeof(*numas));
    for (size_t i = 0; i < maker->core_count; i++) {
        int part = part_of(&maker->cores[i], level);
        size_t known = 0;
        while (known < count && parts[known] != part)
            known++;
        if (known < count)
            continue;
        numas[count] = maker->cores[i].numa;
        parts[count++] = part;
    }
    if (!maker->request->round_numa || level != LEVEL_L3)
        return count;
    int *ordered AUTO_FREE = mem_array(count, sizeof(*ordered));
    size_t done = 0;
    for (int turn = 0; done < count; turn++) {
        int before = 0;
        for (size_t i = 0; i < count; i++) {
            before = i > 0 && numas[i] == numas[i - 1] ? before + 1 : 0;
            if (before == turn)
                ordered[done++] = parts[i];
        }
    }
    for (size_t i = 0; i < count; i++)
        parts[i] = ordered[i];
    return count;
}

static void take_core(struct maker *maker, struct core *core, struct cpu_mask *mask)
{
    core->users++;
    for (size_t i = core->first; i < core->first + core->count; i++) {
        if (maker->topology->cpus[i].allowed)
            cpu_mask_set(mask, maker->topology->cpus[i].cpu);
    }
}

/* `need` cores inside that have at most `users`, first those with the fewest; false and none when
 * there are not so many. */
static bool take_free(struct maker *maker, size_t need, int users, struct cpu_mask *mask)
{
    size_t found = 0;
    for (size_t i = 0; i < maker->core_count; i++)
        found += maker->cores[i].inside && maker->cores[i].users <= users;
    if (found < need)
        return false;
    for (int has = 0; has <= users && need > 0; has++) {
        for (size_t i = 0; i < maker->core_count && need > 0; i++) {
            struct core *core = &maker->cores[i];
            if (!core->inside || core->users != has)
                continue;
            take_core(maker, core, mask);
            core->inside = false; /* not again, now that it has one more */
            need--;
        }
    }
    return true;
}

static void enter_part(struct maker *maker, enum level level, int part)
{
    for (size_t i = 0; i < maker->core_count; i++)
        maker->cores[i].inside = part_of(&maker->cores[i], level) == part;
}

/* All cores inside, or with --cpus-per-proc so many of them as have the fewest users. */
static void take_inside(struct maker *maker, struct cpu_mask *mask)
{
    size_t inside = 0, need = (size_t)maker->request->cpus_per_proc;
    for (size_t i = 0; i < maker->core_count; i++)
        inside += maker->cores[i].inside;
    maker->binding->narrow |= need > inside;
    if (need == 0 || need > inside)
        need = inside;
    for (int users = 0; !take_free(maker, need, users, mask);)
        users++;
}

/* The next free cores, in the smallest part of the machine that has so many left. */
static void take_next(struct maker *maker, size_t slot, struct cpu_mask *mask)
{
    int *parts AUTO_FREE = mem_array(maker->core_count, sizeof(*parts));
    size_t need = maker->request->cpus_per_proc > 0 ? (size_t)maker->request->cpus_per_proc : 1;
    maker->binding->narrow |= need > maker->core_count;
    if (need > maker->core_count)
        need = maker->core_count;
    for (int users = 0;; users++) {
        for (enum level level = LEVEL_NUMA; level <= LEVEL_MACHINE; level++) {
            size_t count = list_parts(maker, level, parts);
            size_t from = maker->request->round_numa && level == LEVEL_NUMA ? slot % count : 0;
            for (size_t i = 0; i < count; i++) {
                enter_part(maker, level, parts[(from + i) % count]);
                if (take_free(maker, need, users, mask))
                    return;
            }
        }
    }
}

static void take_part(struct maker *maker, enum level level, size_t slot, struct cpu_mask *mask)
{
    int *parts AUTO_FREE = mem_array(maker->core_count, sizeof(*parts));
    size_t count = list_parts(maker, level, parts);
    enter_part(maker, level, parts[slot % count]);
    take_inside(maker, mask);
}

static bool is_in(const struct maker *maker, const struct core *core, const struct cpu_mask *mask)
{
    size_t i = core->first, end = core->first + core->count;
    while (i < end && !cpu_mask_has(mask, maker->topology->cpus[i].cpu))
        i++;
    return i < end;
}

static void take_near_gpu(struct maker *maker, size_t slot, struct cpu_mask *mask)
{
    const struct device_list *gpus = maker->request->gpus;
    size_t each = maker->request->gpus_per_proc > 0 ? (size_t)maker->request->gpus_per_proc : 1;
    bool unknown = false, any = false;
    for (size_t j = 0; j < each; j++)
        unknown = unknown || gpus->items[(slot * each + j) % gpus->count].cpus.bytes == 0;
    for (size_t i = 0; i < maker->core_count; i++) {
        struct core *core = &maker->cores[i];
        core->inside = unknown;
        for (size_t j = 0; j < each && !core->inside; j++)
            core->inside = is_in(maker, core, &gpus->items[(slot * each + j) % gpus->count].cpus);
        any = any || core->inside;
    }
    for (size_t i = 0; i < maker->core_count && !any; i++)
        maker->cores[i].inside = true;
    maker->binding->far += !any;
    take_inside(maker, mask);
}

static int bind_slot(struct maker *maker, size_t slot, struct error *err)
{
    const struct binding_request *request = maker->request;
    struct cpu_mask *mask = &maker->binding->ranks[slot];
    const char *list = request->cpu_lists != NULL ? request->cpu_lists[slot] : NULL;
    if (list != NULL && list[0] != '\0') {
        if (binding_cpus_parse(list, maker->topology, mask, err) < 0)
            return -1;
        for (size_t i = 0; i < maker->core_count; i++)
            maker->cores[i].users += is_in(maker, &maker->cores[i], mask);
        return 0;
    }
    switch (request->unit) {
    case BIND_NUMA: take_part(maker, LEVEL_NUMA, slot, mask); break;
    case BIND_L3: take_part(maker, LEVEL_L3, slot, mask); break;
    case BIND_GPU: take_near_gpu(maker, slot, mask); break;
    case BIND_CORE: take_next(maker, slot, mask); break;
    case BIND_NONE:
        if (request->cpus_per_proc > 0)
            take_next(maker, slot, mask);
        else
            take_part(maker, LEVEL_MACHINE, 0, mask);
        break;
    }
    return 0;
}

/* The share of its cores for each worker; workers that share a core get equal parts of it. */
static void count_threads(struct maker *maker)
{
    struct binding *binding = maker->binding;
    int wanted = maker->request->cpus_per_proc > 0 ? maker->request->cpus_per_proc : 1;
    for (size_t slot = 0; slot < binding->count; slot++) {
        double share = 1e-6;
        int own = 0; /* cores, which a rankfile may make fewer than --cpus-per-proc */
        for (size_t i = 0; i < maker->core_count; i++) {
            const struct core *core = &maker->cores[i];
            bool has = is_in(maker, core, &binding->ranks[slot]);
            share += has ? 1.0 / core->users : 0;
            own += has;
        }
        binding->threads[slot] = share >= 1 ? (int)share : 1;
        binding->sharing += share < (own < wanted ? own : wanted);
    }
}

struct binding *binding_create(const struct topology *topology,
                               const struct binding_request *request, struct error *err)
{
    struct maker maker = {.topology = topology, .request = request};
    list_cores(&maker);
    struct core *cores AUTO_FREE = maker.cores;
    if (maker.core_count == 0) {
        error_set(err, "cannot bind workers: this process may not use any CPU of the machine");
        return NULL;
    }
    if (request->unit == BIND_GPU && (request->gpus == NULL || request->gpus->count == 0)) {
        error_usage(err, "--bind-to gpu: no GPU was found on this host; use --bind-to numa");
        return NULL;
    }
    struct binding *binding = maker.binding = mem_alloc(sizeof(*binding));
    binding->cores = maker.core_count;
    binding->count = request->slots > 0 ? (size_t)request->slots : 0;
    binding->ranks = mem_array(binding->count, sizeof(*binding->ranks));
    binding->threads = mem_array(binding->count, sizeof(*binding->threads));
    for (size_t slot = 0; slot < binding->count; slot++) {
        if (bind_slot(&maker, slot, err) == 0)
            continue;
        binding_destroy(binding);
        return NULL;
    }
    count_threads(&maker);
    return binding;
}

void binding_destroy(struct binding *binding)
{
    if (binding == NULL)
        return;
    for (size_t i = 0; i < binding->count; i++)
        cpu_mask_clear(&binding->ranks[i]);
    free(binding->ranks);
    free(binding->threads);
    free(binding);
}
