/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/topology.h"

#include <stdlib.h>

#include "base/mem.h"

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
    const int left[] = {x->package, x->numa, x->l3, x->core, x->cpu};
    const int right[] = {y->package, y->numa, y->l3, y->core, y->cpu};
    size_t i = 0;
    while (i < 4 && left[i] == right[i])
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
    device_list_destroy(&topology->gpus);
    device_list_destroy(&topology->nics);
    *topology = (struct topology){0};
}
