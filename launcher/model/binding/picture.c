/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/picture.h"

#include <stdio.h>
#include <string.h>

#define CORES_DRAWN 96        /* machines with more get counts */
#define LINE_MAX_BYTES 65536  /* of one line */
#define COLUMN_MAX_BYTES 4096 /* of a list of CPUs in it */

static bool is_new_core(const struct topology *topology, size_t index)
{
    return index == 0 || topology->cpus[index].core != topology->cpus[index - 1].core;
}

static size_t count_cores(const struct topology *topology)
{
    size_t cores = 0;
    for (size_t i = 0; i < topology->count; i++)
        cores += is_new_core(topology, i);
    return cores;
}

/* The letter of the core that begins at `index`; its CPUs are skipped. */
static char letter_of(const struct topology *topology, const struct cpu_mask *mask, size_t *index)
{
    int ours = 0, bound = 0, core = topology->cpus[*index].core;
    for (; *index < topology->count && topology->cpus[*index].core == core; ++*index) {
        ours += topology->cpus[*index].allowed;
        bound += cpu_mask_has(mask, topology->cpus[*index].cpu);
    }
    if (bound > 0)
        return bound >= ours ? 'B' : 'b';
    return ours > 0 ? '.' : 'x';
}

/* What divides the core at `index` from the one before it; NULL: nothing. */
static const char *divider(const struct topology *topology, size_t index)
{
    const struct topology_cpu *cpu = &topology->cpus[index];
    if (index == 0)
        return "[";
    if (cpu->package != cpu[-1].package)
        return "][";
    if (cpu->numa != cpu[-1].numa)
        return "|";
    return cpu->l3 != cpu[-1].l3 ? "/" : NULL;
}

int binding_picture(const struct topology *topology, const struct cpu_mask *mask, struct buf *out)
{
    bool counted = count_cores(topology) > CORES_DRAWN;
    int failed = 0, run = 0;
    char last = '\0';
    for (size_t i = 0; i < topology->count;) {
        const char *divides = divider(topology, i);
        char letter = letter_of(topology, mask, &i);
        if (counted && run > 0 && (divides != NULL || letter != last)) {
            failed |= buf_printf(out, divides != NULL ? "%d%c" : "%d%c ", run, last);
            run = 0;
        }
        if (divides != NULL)
            failed |= buf_puts(out, divides);
        last = letter;
        run++;
        if (!counted)
            failed |= buf_putc(out, letter);
    }
    if (counted && run > 0)
        failed |= buf_printf(out, "%d%c", run, last);
    return topology->count > 0 ? failed | buf_putc(out, ']') : failed;
}

static void put_count(struct buf *out, size_t count, const char *one, const char *many)
{
    if (count > 0)
        buf_printf(out, "%s%zu %s", out->length > 0 ? ", " : "", count, count == 1 ? one : many);
}

/* A memory node may span packages: machines without any have one for all CPUs. */
static size_t count_numas(const struct topology *topology)
{
    size_t numas = 0;
    for (size_t i = 0; i < topology->count; i++) {
        const struct topology_cpu *cpu = &topology->cpus[i];
        if (i > 0 && cpu->numa == cpu[-1].numa)
            continue;
        size_t before = 0;
        while (before < i && topology->cpus[before].numa != cpu->numa)
            before++;
        numas += before == i;
    }
    return numas;
}

/* "2 packages, 4 memory nodes, 16 cores, 32 CPUs, 8 GPUs; workers bound to gpu; B ..." */
static void add_machine(const struct topology *topology, size_t gpus, const char *unit,
                        struct strv *out)
{
    struct buf text AUTO_BUF = BUF_INIT(LINE_MAX_BYTES);
    size_t packages = 0;
    for (size_t i = 0; i < topology->count; i++)
        packages += i == 0 || topology->cpus[i].package != topology->cpus[i - 1].package;
    put_count(&text, packages, "package", "packages");
    put_count(&text, count_numas(topology), "memory node", "memory nodes");
    put_count(&text, count_cores(topology), "core", "cores");
    put_count(&text, topology->count, "CPU", "CPUs");
    put_count(&text, gpus, "GPU", "GPUs");
    buf_printf(&text, "; bound to: %s; B bound, b partly, . free, x not available", unit);
    strv_add(out, buf_text(&text));
}

/* Is GPU `number` in a list such as "0,12"? */
static bool has_gpu(const char *gpus, size_t number)
{
    char wanted[24];
    size_t length = (size_t)snprintf(wanted, sizeof(wanted), "%zu", number);
    while (gpus != NULL) {
        if (strncmp(gpus, wanted, length) == 0 && (gpus[length] == ',' || gpus[length] == '\0'))
            return true;
        gpus = strchr(gpus, ',');
        gpus += gpus != NULL;
    }
    return false;
}

static void add_gpu(const struct device_list *gpus, size_t number,
                    const struct binding_worker *workers, size_t count, struct strv *out)
{
    const struct device *gpu = &gpus->items[number];
    struct buf text AUTO_BUF = BUF_INIT(LINE_MAX_BYTES), cpus AUTO_BUF = BUF_INIT(COLUMN_MAX_BYTES);
    buf_printf(&text, "GPU %zu", number);
    if (gpu->pci != NULL)
        buf_printf(&text, " at %s", gpu->pci);
    if (gpu->numa >= 0)
        buf_printf(&text, ", memory node %d", gpu->numa);
    cpu_mask_list(&gpu->cpus, &cpus);
    if (cpus.length > 0)
        buf_printf(&text, ", near CPUs %s", buf_text(&cpus));
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!has_gpu(workers[i].gpus, number))
            continue;
        buf_printf(&text, any ? ",%u" : ": rank %u", workers[i].rank);
        any = true;
    }
    strv_add(out, buf_text(&text));
}

/* Cells of a column are as wide as the widest of them. */
struct widths {
    int rank, cpus, gpus;
};

static int wider(int width, size_t length)
{
    return (int)length > width ? (int)length : width;
}

static struct widths measure(const struct binding_worker *workers, size_t count)
{
    struct widths widths = {0};
    for (size_t i = 0; i < count; i++) {
        struct buf cpus AUTO_BUF = BUF_INIT(COLUMN_MAX_BYTES);
        char rank[16];
        cpu_mask_list(workers[i].mask, &cpus);
        widths.rank =
            wider(widths.rank, (size_t)snprintf(rank, sizeof(rank), "%u", workers[i].rank));
        widths.cpus = wider(widths.cpus, cpus.length);
        widths.gpus = wider(widths.gpus, workers[i].gpus == NULL ? 0 : strlen(workers[i].gpus));
    }
    return widths;
}

static void add_worker(const struct topology *topology, const struct binding_worker *worker,
                       const struct widths *widths, struct strv *out)
{
    struct buf text AUTO_BUF = BUF_INIT(LINE_MAX_BYTES), cpus AUTO_BUF = BUF_INIT(COLUMN_MAX_BYTES);
    cpu_mask_list(worker->mask, &cpus);
    buf_printf(&text, "rank %-*u  CPUs %-*s  ", widths->rank, worker->rank, widths->cpus,
               buf_text(&cpus));
    if (widths->gpus > 0)
        buf_printf(&text, "GPU %-*s  ", widths->gpus, worker->gpus == NULL ? "-" : worker->gpus);
    binding_picture(topology, worker->mask, &text);
    strv_add(out, buf_text(&text));
}

void binding_report(const struct topology *topology, const struct device_list *gpus,
                    const char *unit, const struct binding_worker *workers, size_t count,
                    struct strv *out)
{
    struct widths widths = measure(workers, count);
    add_machine(topology, gpus->count, unit, out);
    for (size_t i = 0; i < gpus->count; i++)
        add_gpu(gpus, i, workers, count, out);
    for (size_t i = 0; i < count; i++)
        add_worker(topology, &workers[i], &widths, out);
}
