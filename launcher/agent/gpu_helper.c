/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu_helper.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/helper_program.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/nvml.h"
#include "wire/control.pb-c.h"

struct energy {
    bool known;
    uint64_t millijoules;
};

struct helper {
    struct nvml nvml;
    struct energy energy[GPUS_MAX];
    int64_t energy_due_ms;
};

static Hvdrun__GpuProcess *new_process(const struct nvml_process *source)
{
    Hvdrun__GpuProcess *process = mem_alloc(sizeof(*process));
    hvdrun__gpu_process__init(process);
    process->pid = source->pid;
    process->has_memory = source->memory != NVML_MEMORY_UNKNOWN;
    process->memory_bytes = process->has_memory ? source->memory : 0;
    return process;
}

static void fill(Hvdrun__GpuUsage *message, const struct gpu_usage *source)
{
    hvdrun__gpu_usage__init(message);
    message->index = source->index;
    message->uuid = mem_strdup(source->uuid);
    message->has_use = source->has_use;
    message->use_percent = source->use.gpu;
    message->memory_use_percent = source->use.memory;
    message->has_power = source->has_power;
    message->power_mw = source->power_mw;
    message->has_memory = source->has_memory;
    message->memory_bytes = source->memory.total;
    message->memory_used_bytes = source->memory.used;
    message->trouble = (uint32_t)source->trouble;
    message->n_processes = source->process_count;
    message->processes = mem_array(source->process_count + 1, sizeof(*message->processes));
    for (size_t i = 0; i < source->process_count; i++)
        message->processes[i] = new_process(&source->processes[i]);
}

static Hvdrun__GpuUsage *read_gpu(struct helper *helper, unsigned index, bool energy)
{
    struct gpu_usage usage;
    Hvdrun__GpuUsage *message = mem_alloc(sizeof(*message));
    struct energy *last = &helper->energy[index];
    gpu_usage_read(&helper->nvml, index, energy, &usage);
    fill(message, &usage);
    if (energy)
        *last = (struct energy){usage.has_energy, usage.energy_mj};
    message->has_energy = last->known && usage.trouble == 0;
    message->energy_mj = message->has_energy ? last->millijoules : 0;
    return message;
}

static Hvdrun__GpuUsages *read_gpus(struct helper *helper)
{
    bool energy = clock_mono_ms() >= helper->energy_due_ms;
    Hvdrun__GpuUsages *message = mem_alloc(sizeof(*message));
    hvdrun__gpu_usages__init(message);
    message->n_gpus = gpu_usage_count(&helper->nvml);
    message->gpus = mem_array(message->n_gpus + 1, sizeof(*message->gpus));
    for (unsigned i = 0; i < message->n_gpus; i++)
        message->gpus[i] = read_gpu(helper, i, energy);
    if (energy)
        helper->energy_due_ms = clock_mono_ms() + GPU_ENERGY_PERIOD_MS;
    return message;
}

static int answer(struct helper *helper)
{
    Hvdrun__GpuUsages *message = read_gpus(helper);
    int result = piped_message_write(STDOUT_FILENO, &message->base);
    hvdrun__gpu_usages__free_unpacked(message, NULL);
    return result;
}

static int run(const char *operand)
{
    (void)operand;
    struct helper helper = {.energy_due_ms = 0};
    struct error err = ERROR_INIT;
    char asked;
    prctl(PR_SET_NAME, "hvdrun-gpus");
    if (nvml_open(&helper.nvml, &err) < 0)
        return GPU_HELPER_NONE;
    while (fd_read(STDIN_FILENO, &asked, 1) == 1) {
        if (answer(&helper) < 0)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

const struct helper_program gpu_helper = {GPU_HELPER_WORD, false, run};
