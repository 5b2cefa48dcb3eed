/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/gpu_health_agent.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/gpu_helper.h"
#include "agent/helper_program.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/nvml.h"
#include "wire/control.pb-c.h"

#define ECC_COUNTS ((size_t)NVML_ECC_TYPES * NVML_ECC_COUNTERS)

/* Messages that follow each other are one message. */
static int put(const Hvdrun__GpuHealths *message)
{
    uint8_t bytes[1024];
    if (hvdrun__gpu_healths__get_packed_size(message) > sizeof(bytes))
        return -1;
    return fd_write_all(STDOUT_FILENO, bytes, hvdrun__gpu_healths__pack(message, bytes));
}

static int put_gpu(const struct gpu_health *source)
{
    Hvdrun__GpuHealth gpu = HVDRUN__GPU_HEALTH__INIT, *gpus[] = {&gpu};
    Hvdrun__GpuHealths message = HVDRUN__GPU_HEALTHS__INIT;
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
    message.gpus = gpus;
    message.n_gpus = 1;
    return put(&message);
}

static int run(const char *operand)
{
    (void)operand;
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
        struct gpu_health gpu;
        gpu_health_read(&nvml, i, &gpu);
        if (put_gpu(&gpu) < 0)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

struct gpu_health_question {
    struct program *program;
    void (*done)(void *context, const char *bytes, size_t length, const char *missing);
    void *context;
};

static void answered(void *context, const struct program_result *result)
{
    struct gpu_health_question *question = context;
    bool ended = result->signal == 0 || result->signal == SIGKILL || result->signal == SIGTERM;
    const char *missing = "";
    if (result->why != NULL && result->status != GPU_HELPER_NONE)
        missing = result->status < 0 && ended ? "NVIDIA's library did not answer in time"
                                              : "NVIDIA's library has failed";
    question->program = NULL;
    question->done(question->context, result->text, result->length, missing);
}

struct gpu_health_question *
gpu_health_ask(struct loop *loop, struct helpers *helpers, const char *program, int64_t limit_ms,
               void (*done)(void *context, const char *bytes, size_t length, const char *missing),
               void *context)
{
    struct gpu_health_question *question = mem_alloc(sizeof(*question));
    char *const argv[] = {(char *)"hvdrun-agent", (char *)GPU_HEALTH_WORD, NULL};
    const struct program_spec spec = {.loop = loop,
                                      .helpers = helpers,
                                      .path = program,
                                      .argv = argv,
                                      .output_max = GPU_HEALTH_MAX,
                                      .time_max_ms = limit_ms};
    *question = (struct gpu_health_question){.done = done, .context = context};
    question->program = program_start(&spec, answered, question);
    return question;
}

void gpu_health_cancel(struct gpu_health_question *question)
{
    if (question == NULL)
        return;
    program_cancel(question->program);
    free(question);
}

const struct helper_program gpu_health_helper = {GPU_HEALTH_WORD, false, run};
