/* SPDX-License-Identifier: Apache-2.0 */
#include "node/topology.h"

#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/module_open.h"
#include "node/facts.h"
#include "node/gpus.h"
#include "node/module/topology_module.h"

#define CPU_LIMIT 65536
#define NUMA_LIMIT 4096
#define NO_L3 (-1) /* until its memory node is known */

int topology_read_module(const char *module, struct topology *out, struct error *err)
{
    static const struct module_kind kind = {"hvdrun-topology.so", TOPOLOGY_MODULE_SYMBOL,
                                            TOPOLOGY_MODULE_VERSION,
                                            "install hwloc or leave out --bind-to"};
    const struct topology_module *table = module_open(module, &kind, err);
    return table == NULL ? -1 : table->read(out, err);
}

/* A level 3 cache is known by its first CPU; CPUs without one have that of their memory node. */
static int read_l3(const char *root, int cpu)
{
    char *base AUTO_FREE = mem_printf("%s/devices/system/cpu/cpu%d/cache/index3", root, cpu);
    char *level AUTO_FREE = mem_printf("%s/level", base);
    char *shared AUTO_FREE = mem_printf("%s/shared_cpu_list", base);
    return pci_read_number(level, 0) == 3 ? pci_read_number(shared, NO_L3) : NO_L3;
}

/* Calls `each` for the numbers of a kernel list such as 0-3,8; stops at rubbish. */
static void each_number(const char *list, int limit, void (*each)(void *context, int number),
                        void *context)
{
    while (isdigit((unsigned char)*list)) {
        char *end = NULL;
        long first = strtol(list, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i <= last && i < limit; i++)
            each(context, (int)i);
        list = *end == ',' ? end + 1 : end;
    }
}

struct sysfs {
    const char *root;
    struct topology *out;
    cpu_set_t *allowed;
    size_t allowed_size;
    int numa; /* the memory node whose CPUs are being listed */
};

static void add_cpu(void *context, int number)
{
    struct sysfs *sysfs = context;
    char *base AUTO_FREE = mem_printf("%s/devices/system/cpu/cpu%d/topology", sysfs->root, number);
    char *core AUTO_FREE = mem_printf("%s/core_id", base);
    char *package AUTO_FREE = mem_printf("%s/physical_package_id", base);
    struct topology_cpu cpu = {
        .cpu = number,
        .core = pci_read_number(core, number),
        .l3 = read_l3(sysfs->root, number),
        .package = pci_read_number(package, 0),
        .allowed = CPU_ISSET_S((size_t)number, sysfs->allowed_size, sysfs->allowed)};
    topology_add(sysfs->out, cpu);
}

static void set_numa(void *context, int number)
{
    struct sysfs *sysfs = context;
    for (size_t i = 0; i < sysfs->out->count; i++) {
        if (sysfs->out->cpus[i].cpu == number)
            sysfs->out->cpus[i].numa = sysfs->numa;
    }
}

static void add_numa(void *context, int number)
{
    struct sysfs *sysfs = context;
    char *path AUTO_FREE = mem_printf("%s/devices/system/node/node%d/cpulist", sysfs->root, number);
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    sysfs->numa = number;
    if (fd_read_file(path, &text, NULL) == 0)
        each_number(buf_text(&text), CPU_LIMIT, set_numa, sysfs);
}

/* The kernel numbers cores within a package: makes the numbers differ over the machine. */
static void number_cores(struct topology *topology)
{
    int core = -1, raw = -1;
    for (size_t i = 0; i < topology->count; i++) {
        struct topology_cpu *cpu = &topology->cpus[i];
        bool same = i > 0 && cpu->package == cpu[-1].package && cpu->numa == cpu[-1].numa &&
                    cpu->core == raw;
        raw = cpu->core;
        core += same ? 0 : 1;
        cpu->core = core;
    }
}

int topology_read_sysfs(const char *root, struct topology *out, struct error *err)
{
    *out = (struct topology){0};
    struct sysfs sysfs = {.root = root, .out = out};
    sysfs.allowed = facts_affinity(&sysfs.allowed_size);
    char *cpus AUTO_FREE = mem_printf("%s/devices/system/cpu/online", root);
    char *nodes AUTO_FREE = mem_printf("%s/devices/system/node/online", root);
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    int result = fd_read_file(cpus, &text, err);
    if (result == 0) {
        each_number(buf_text(&text), CPU_LIMIT, add_cpu, &sysfs);
        buf_clear(&text);
        /* a kernel without memory nodes has no such file: all CPUs stay on node 0 */
        if (fd_read_file(nodes, &text, NULL) == 0)
            each_number(buf_text(&text), NUMA_LIMIT, add_numa, &sysfs);
        for (size_t i = 0; i < out->count; i++) {
            if (out->cpus[i].l3 == NO_L3)
                out->cpus[i].l3 = NO_L3 - 1 - out->cpus[i].numa;
        }
        topology_sort(out);
        number_cores(out);
        if (out->count == 0)
            result = error_set(err, "%s lists no CPU", cpus);
    }
    free(sysfs.allowed);
    return result;
}

int topology_read(const char *module, struct topology *out, struct error *err)
{
    if (module != NULL && topology_read_module(module, out, NULL) == 0)
        return 0;
    return topology_read_sysfs("/sys", out, err);
}
