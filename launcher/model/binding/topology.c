/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/topology.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define WORD_BITS (CHAR_BIT * sizeof(unsigned long))

void cpu_mask_clear(struct cpu_mask *mask)
{
    free(mask->words);
    *mask = (struct cpu_mask){0};
}

void cpu_mask_set(struct cpu_mask *mask, int cpu)
{
    if (cpu < 0 || cpu > CPU_NUMBER_MAX)
        return;
    size_t word = (size_t)cpu / WORD_BITS, have = mask->bytes / sizeof(*mask->words);
    if (word >= have) {
        mask->words = mem_resize_array(mask->words, word + 1, sizeof(*mask->words));
        memset(mask->words + have, 0, (word + 1 - have) * sizeof(*mask->words));
        mask->bytes = (word + 1) * sizeof(*mask->words);
    }
    mask->words[word] |= 1ul << ((size_t)cpu % WORD_BITS);
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

void cpu_mask_set_list(struct cpu_mask *mask, const char *list)
{
    while (isdigit((unsigned char)*list)) {
        char *end = NULL;
        long first = strtol(list, &end, 10), last = first;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && cpu <= CPU_NUMBER_MAX; cpu++)
            cpu_mask_set(mask, (int)cpu);
        list = *end == ',' ? end + 1 : end;
    }
}

int cpu_mask_list(const struct cpu_mask *mask, struct buf *out)
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

void device_copy(struct device *to, const struct device *from)
{
    *to = *from;
    to->name = mem_strdup(from->name);
    to->pci = mem_strdup(from->pci);
    to->path = mem_strdup(from->path);
    to->cpus.words = from->cpus.bytes > 0 ? mem_dup(from->cpus.words, from->cpus.bytes) : NULL;
}

void device_list_add(struct device_list *list, const struct device *device)
{
    MEM_ADD(list->items, list->count) = *device;
}

static int compare_texts(const char *one, const char *other)
{
    return strcmp(one == NULL ? "" : one, other == NULL ? "" : other);
}

static int compare_devices(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    if (x->kind == DEVICE_AMD && y->kind == DEVICE_AMD)
        return x->number - y->number;
    int order = compare_texts(x->pci, y->pci);
    order = order != 0 ? order : compare_texts(x->name, y->name);
    return order != 0 ? order : x->number - y->number;
}

void device_list_sort(struct device_list *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), compare_devices);
}

void device_list_destroy(struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].pci);
        free(list->items[i].path);
        cpu_mask_clear(&list->items[i].cpus);
    }
    free(list->items);
    *list = (struct device_list){0};
}

static int count_parts(const char *path)
{
    int parts = *path != '\0';
    for (; *path != '\0'; path++)
        parts += *path == '/';
    return parts;
}

int device_distance(const struct device *one, const struct device *other)
{
    if (one->path == NULL || other->path == NULL)
        return -1;
    const char *left = one->path, *right = other->path;
    int common = 0;
    for (;;) {
        size_t length = strcspn(left, "/");
        if (length == 0 || length != strcspn(right, "/") || strncmp(left, right, length) != 0)
            break;
        common++;
        left += length + (left[length] == '/');
        right += length + (right[length] == '/');
    }
    return common == 0 ? -1 : count_parts(left) + count_parts(right);
}

/* The machine. */

void topology_add(struct topology *topology, struct topology_cpu cpu)
{
    if (cpu.cpu < 0)
        return;
    MEM_ADD(topology->cpus, topology->count) = cpu;
}

static int compare_cpus(const void *a, const void *b)
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
        qsort(topology->cpus, topology->count, sizeof(*topology->cpus), compare_cpus);
}

void topology_destroy(struct topology *topology)
{
    free(topology->cpus);
    device_list_destroy(&topology->gpus);
    device_list_destroy(&topology->nics);
    *topology = (struct topology){0};
}

/* Smaller is nearer; INT_MAX: not known. Whatever has a bridge in common is nearer than what is
 * only on the same memory node. */
static int far(const struct device *gpu, const struct device *nic)
{
    int distance = device_distance(gpu, nic);
    if (distance >= 0)
        return distance;
    return gpu->numa >= 0 && gpu->numa == nic->numa ? INT_MAX - 1 : INT_MAX;
}

static int nearest(const struct device_list *nics, const struct device *gpu)
{
    int best = INT_MAX;
    for (size_t i = 0; i < nics->count; i++) {
        int distance = far(gpu, &nics->items[i]);
        best = distance < best ? distance : best;
    }
    return best;
}

/* Are the adapters that are nearest to one GPU those of the other, too? */
static bool same_choice(const struct device_list *nics, const struct device *one,
                        const struct device *other)
{
    int left = nearest(nics, one), right = nearest(nics, other);
    bool same = true;
    for (size_t i = 0; i < nics->count && same; i++)
        same = (far(one, &nics->items[i]) == left) == (far(other, &nics->items[i]) == right);
    return same;
}

const struct device *nic_near(const struct device_list *nics, const struct device_list *gpus,
                              size_t gpu)
{
    int best = nearest(nics, &gpus->items[gpu]);
    if (best == INT_MAX)
        return NULL;
    size_t choices = 0, turn = 0;
    for (size_t i = 0; i < nics->count; i++)
        choices += far(&gpus->items[gpu], &nics->items[i]) == best;
    for (size_t i = 0; i < gpu; i++)
        turn += same_choice(nics, &gpus->items[i], &gpus->items[gpu]);
    turn %= choices;
    for (size_t i = 0; i < nics->count; i++) {
        if (far(&gpus->items[gpu], &nics->items[i]) != best)
            continue;
        if (turn == 0)
            return &nics->items[i];
        turn--;
    }
    return NULL;
}

void nic_near_values(const struct device_list *nics, const struct device_list *gpus, size_t first,
                     size_t count, struct buf *nccl, struct buf *ucx)
{
    for (size_t i = first; i < first + count && i < gpus->count; i++) {
        const struct device *nic = nic_near(nics, gpus, i);
        bool known = nic == NULL;
        for (size_t j = first; j < i && !known; j++)
            known = nic_near(nics, gpus, j) == nic;
        if (known)
            continue;
        /* without the '=' NCCL takes mlx5_1 for the beginning of a name, and mlx5_10 too */
        buf_printf(nccl, "%s%s:%d", nccl->length > 0 ? "," : "=", nic->name, nic->number);
        buf_printf(ucx, "%s%s:%d", ucx->length > 0 ? "," : "", nic->name, nic->number);
    }
}
