/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding.h"

#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"

#define WORD_BITS (CHAR_BIT * sizeof(unsigned long))

void topology_add(struct topology *topology, struct topology_cpu cpu)
{
    if (cpu.cpu < 0)
        return;
    topology->cpus = mem_resize_array(topology->cpus, topology->count + 1, sizeof(*topology->cpus));
    topology->cpus[topology->count++] = cpu;
}

static int compare(const void *a, const void *b)
{
    const struct topology_cpu *x = a, *y = b;
    const int left[] = {x->package, x->numa, x->core, x->cpu};
    const int right[] = {y->package, y->numa, y->core, y->cpu};
    size_t i = 0;
    while (i < 3 && left[i] == right[i])
        i++;
    return (left[i] > right[i]) - (left[i] < right[i]);
}

void topology_sort(struct topology *topology)
{
    if (topology->count > 0)
        qsort(topology->cpus, topology->count, sizeof(*topology->cpus), compare);
}

void topology_destroy(struct topology *topology)
{
    free(topology->cpus);
    *topology = (struct topology){0};
}

bool cpu_mask_has(const struct cpu_mask *mask, int cpu)
{
    size_t at = (size_t)cpu;
    if (cpu < 0 || at / CHAR_BIT >= mask->bytes)
        return false;
    return (mask->words[at / WORD_BITS] >> (at % WORD_BITS) & 1) != 0;
}

int cpu_mask_count(const struct cpu_mask *mask)
{
    int count = 0;
    for (size_t i = 0; i < mask->bytes / sizeof(*mask->words); i++)
        count += __builtin_popcountl(mask->words[i]);
    return count;
}

static struct cpu_mask mask_for(const struct topology *topology)
{
    int highest = 0;
    for (size_t i = 0; i < topology->count; i++)
        highest = topology->cpus[i].cpu > highest ? topology->cpus[i].cpu : highest;
    size_t words = (size_t)highest / WORD_BITS + 1;
    return (struct cpu_mask){.words = mem_array(words, sizeof(unsigned long)),
                             .bytes = words * sizeof(unsigned long)};
}

static int place_of(const struct topology_cpu *cpu, enum bind_unit unit)
{
    switch (unit) {
    case BIND_CORE: return cpu->core;
    case BIND_NUMA: return cpu->numa;
    case BIND_NONE: break;
    }
    return 0;
}

/* The different places with an allowed CPU, in the machine's order; returns their number. */
static size_t list_places(const struct topology *topology, enum bind_unit unit, int *places)
{
    size_t count = 0;
    for (size_t i = 0; i < topology->count; i++) {
        int place = place_of(&topology->cpus[i], unit);
        size_t known = 0;
        while (known < count && places[known] != place)
            known++;
        if (topology->cpus[i].allowed && known == count)
            places[count++] = place;
    }
    return count;
}

struct binding *binding_create(const struct topology *topology, enum bind_unit unit, int local_size,
                               struct error *err)
{
    int *places AUTO_FREE = mem_array(topology->count, sizeof(*places));
    size_t count = list_places(topology, unit, places);
    if (count == 0) {
        error_set(err, "cannot bind workers: this process may use none of the machine's CPUs");
        return NULL;
    }
    struct binding *binding = mem_alloc(sizeof(*binding));
    binding->places = count;
    binding->count = local_size > 0 ? (size_t)local_size : 0;
    binding->ranks = mem_array(binding->count, sizeof(*binding->ranks));
    for (size_t rank = 0; rank < binding->count; rank++) {
        struct cpu_mask *mask = &binding->ranks[rank];
        *mask = mask_for(topology);
        for (size_t i = 0; i < topology->count; i++) {
            const struct topology_cpu *cpu = &topology->cpus[i];
            if (cpu->allowed && place_of(cpu, unit) == places[rank % count])
                mask->words[(size_t)cpu->cpu / WORD_BITS] |= 1ul << ((size_t)cpu->cpu % WORD_BITS);
        }
    }
    return binding;
}

void binding_destroy(struct binding *binding)
{
    if (binding == NULL)
        return;
    for (size_t i = 0; i < binding->count; i++)
        free(binding->ranks[i].words);
    free(binding->ranks);
    free(binding);
}

int binding_picture(const struct topology *topology, const struct cpu_mask *mask, struct buf *out)
{
    int failed = 0;
    for (size_t i = 0; i < topology->count; i++) {
        const struct topology_cpu *cpu = &topology->cpus[i], *last = i > 0 ? cpu - 1 : NULL;
        if (last == NULL || last->package != cpu->package)
            failed |= buf_puts(out, last == NULL ? "[" : "][");
        else if (last->numa != cpu->numa)
            failed |= buf_putc(out, '|');
        else if (last->core != cpu->core)
            failed |= buf_putc(out, '/');
        failed |= buf_putc(out, cpu_mask_has(mask, cpu->cpu) ? 'B' : cpu->allowed ? '.' : 'x');
    }
    return topology->count > 0 ? failed | buf_putc(out, ']') : failed;
}

int binding_list(const struct cpu_mask *mask, struct buf *out)
{
    int failed = 0, end = (int)(mask->bytes * CHAR_BIT);
    bool any = false;
    for (int first = 0; first < end; first++) {
        if (!cpu_mask_has(mask, first))
            continue;
        int last = first;
        while (cpu_mask_has(mask, last + 1))
            last++;
        failed |= buf_printf(out, last > first ? "%s%d-%d" : "%s%d", any ? "," : "", first, last);
        any = true;
        first = last;
    }
    return failed;
}
