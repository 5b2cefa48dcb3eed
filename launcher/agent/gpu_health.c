/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu_health.h"

#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu_sampler.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "model/usage/gpu_words.h"
#include "node/nvml.h"
#include "wire/control.pb-c.h"

#define ECC_COUNTS ((size_t)NVML_ECC_TYPES * NVML_ECC_COUNTERS)
#define HOLDERS_MAX 16
#define NAME_MAX_BYTES 64
#define LASTS_MS 500

/* Messages that follow each other are one message. */
static int put(const Hvdrun__GpuHealths *message)
{
    uint8_t *bytes AUTO_FREE = mem_alloc(hvdrun__gpu_healths__get_packed_size(message));
    return fd_write_all(STDOUT_FILENO, bytes, hvdrun__gpu_healths__pack(message, bytes));
}

/* What holds memory of a GPU: the first ones, which is enough to find them. */
struct holders {
    Hvdrun__GpuProcess list[HOLDERS_MAX], *pointers[HOLDERS_MAX];
    char names[HOLDERS_MAX][NAME_MAX_BYTES], users[HOLDERS_MAX][NAME_MAX_BYTES];
    size_t count;
};

static void name_holder(unsigned pid, char *name, char *user)
{
    struct buf text AUTO_BUF = BUF_INIT(NAME_MAX_BYTES);
    char *path AUTO_FREE = mem_printf("/proc/%u/comm", pid);
    struct stat info;
    if (fd_read_file(path, &text, NULL) == 0)
        snprintf(name, NAME_MAX_BYTES, "%.*s", (int)strcspn(buf_text(&text), "\n"),
                 buf_text(&text));
    if (stat(path, &info) < 0)
        return;
    const struct passwd *known = getpwuid(info.st_uid);
    if (known != NULL)
        snprintf(user, NAME_MAX_BYTES, "%s", known->pw_name);
    else
        snprintf(user, NAME_MAX_BYTES, "%u", (unsigned)info.st_uid);
}

static void fill_holders(const struct gpu_usage *usage, struct holders *out)
{
    *out = (struct holders){.count = 0};
    for (size_t i = 0; i < usage->process_count && out->count < HOLDERS_MAX; i++) {
        const struct nvml_process *from = &usage->processes[i];
        Hvdrun__GpuProcess *to = &out->list[out->count];
        hvdrun__gpu_process__init(to);
        name_holder(from->pid, out->names[out->count], out->users[out->count]);
        to->pid = from->pid;
        to->has_memory = from->memory != NVML_MEMORY_UNKNOWN;
        to->memory_bytes = to->has_memory ? from->memory : 0;
        to->name = out->names[out->count];
        to->user = out->users[out->count];
        out->pointers[out->count++] = to;
    }
}

/* `usage`: NULL, or what only `hvdrun check` wants. */
static int put_gpu(const struct gpu_health *source, const struct gpu_usage *usage)
{
    Hvdrun__GpuHealth gpu = HVDRUN__GPU_HEALTH__INIT, *gpus[] = {&gpu};
    Hvdrun__GpuHealths message = HVDRUN__GPU_HEALTHS__INIT;
    struct holders holders = {.count = 0};
    uint32_t rows[] = {source->rows_corrected, source->rows_uncorrected};
    gpu.index = source->index;
    gpu.uuid = (char *)source->uuid;
    gpu.pci = (char *)source->pci;
    gpu.has_temperature = source->has_temperature;
    gpu.celsius = source->celsius;
    gpu.has_reasons = source->has_reasons;
    gpu.reasons = source->reasons;
    gpu.n_ecc_errors = source->has_ecc ? ECC_COUNTS : 0;
    gpu.ecc_errors = (uint64_t *)source->ecc;
    gpu.n_remapped_rows = source->has_rows ? sizeof(rows) / sizeof(rows[0]) : 0;
    gpu.remapped_rows = rows;
    gpu.remapping_pending = source->rows_pending;
    gpu.remapping_failed = source->rows_failed;
    gpu.trouble = (uint32_t)source->trouble;
    if (usage != NULL) {
        fill_holders(usage, &holders);
        gpu.name = (char *)source->name;
        gpu.links = source->links;
        gpu.links_up = source->links_up;
        gpu.has_memory = usage->has_memory;
        gpu.memory_bytes = usage->memory.total;
        gpu.memory_used_bytes = usage->memory.used;
        gpu.processes = holders.pointers;
        gpu.n_processes = holders.count;
    }
    message.gpus = gpus;
    message.n_gpus = 1;
    return put(&message);
}

static bool has_alarm(const struct gpu_health *gpu)
{
    for (int i = 0; clock_reason_name(i) != NULL; i++) {
        if ((gpu->reasons & clock_reason_bit(i)) != 0 &&
            clock_reason_is_alarm(clock_reason_name(i)))
            return true;
    }
    return false;
}

/* A moment of low clocks is normal, so what lasts is asked for twice. */
static int look(const struct nvml *nvml, unsigned index, bool all)
{
    struct gpu_health gpu, later;
    struct gpu_usage usage;
    gpu_health_read(nvml, index, &gpu);
    if (!all)
        return put_gpu(&gpu, NULL);
    gpu_usage_read(nvml, index, false, &usage);
    if (gpu.has_reasons && has_alarm(&gpu)) {
        poll(NULL, 0, LASTS_MS);
        gpu_health_read(nvml, index, &later);
        gpu.reasons &= later.reasons;
    }
    return put_gpu(&gpu, &usage);
}

static int run(const char *operand)
{
    bool all = strcmp(operand, GPU_HEALTH_ALL) == 0;
    struct nvml nvml;
    struct error err = ERROR_INIT;
    prctl(PR_SET_NAME, "hvdrun-gpus");
    /* The agent may end its workers meanwhile; KILL comes a second later. */
    signal(SIGTERM, SIG_IGN);
    if (nvml_load(&nvml, &err) < 0)
        return GPU_HELPER_NONE;
    Hvdrun__GpuHealths begin = HVDRUN__GPU_HEALTHS__INIT;
    begin.library = true;
    if (put(&begin) < 0)
        return EXIT_FAILURE;
    if (nvml_start(&nvml, &err) < 0)
        return GPU_HELPER_NONE;
    unsigned count = gpu_usage_count(&nvml);
    for (unsigned i = 0; i < count; i++) {
        if (look(&nvml, i, all) < 0)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

const char *gpu_health_missing(const struct program_result *result)
{
    bool ended = result->signal == 0 || result->signal == SIGKILL || result->signal == SIGTERM;
    if (result->why == NULL || result->status == GPU_HELPER_NONE)
        return "";
    return result->status < 0 && ended ? "NVIDIA's library did not answer in time"
                                       : "NVIDIA's library has failed";
}

struct program *gpu_health_ask(struct loop *loop, struct helpers *helpers, const char *program,
                               const char *what, int64_t limit_ms,
                               void (*done)(void *context, const struct program_result *result),
                               void *context)
{
    char *const argv[] = {(char *)"hvdrun-agent", (char *)GPU_HEALTH_WORD, (char *)what, NULL};
    const struct program_spec spec = {.loop = loop,
                                      .helpers = helpers,
                                      .path = program,
                                      .argv = argv,
                                      .output_max = GPU_HEALTH_MAX,
                                      .time_max_ms = limit_ms};
    return program_start(&spec, done, context);
}

const struct helper_program gpu_health_helper = {GPU_HEALTH_WORD, true, run};
