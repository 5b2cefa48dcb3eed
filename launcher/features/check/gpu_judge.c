/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/gpu_judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/usage/gpu_words.h"
#include "model/usage/outliers.h"

#define MIB ((uint64_t)1 << 20)
#define HOT 90              /* degrees Celsius: GPUs that work hard are below that */
#define HELD (64 * MIB)     /* less is what tools such as MPS keep there */
#define UNSEEN (2048 * MIB) /* likewise, but also what the driver keeps */
#define TEXT_MAX 1024

/* A GPU of any host, and its figures; NAN: not known. */
struct one {
    int host;
    const Hvdrun__GpuHealth *gpu;
    double celsius, used_mib, links_up, ecc, speed[SPEEDS];
};

struct all {
    struct one *list;
    size_t count;
};

static double volatile_ecc(const Hvdrun__GpuHealth *gpu)
{
    /* corrected and uncorrected, each since the driver was loaded and ever */
    return gpu->n_ecc_errors == 4 && gpu->ecc_errors[2] != UINT64_MAX ? (double)gpu->ecc_errors[2]
                                                                      : NAN;
}

static struct one make_one(const struct check_result *result, int host,
                           const Hvdrun__GpuHealth *gpu)
{
    const struct gpu_speed *speed = gpu_test_find(&result->hosts[host].gpu_test, gpu->uuid);
    struct one one = {.host = host,
                      .gpu = gpu,
                      .celsius = gpu->has_temperature ? (double)gpu->celsius : (double)NAN,
                      .used_mib = gpu->has_memory ? (double)(gpu->memory_used_bytes / MIB) : NAN,
                      .links_up = gpu->links > 0 ? (double)gpu->links_up : (double)NAN,
                      .ecc = volatile_ecc(gpu)};
    for (int i = 0; i < SPEEDS; i++)
        one.speed[i] = speed == NULL ? NAN : speed->value[i];
    return one;
}

static void gather(const struct check_result *result, struct all *out)
{
    size_t count = 0;
    for (int i = 0; i < result->count; i++)
        count += result->hosts[i].gpus == NULL ? 0 : result->hosts[i].gpus->n_gpus;
    *out = (struct all){.list = mem_array(count, sizeof(struct one))};
    for (int i = 0; i < result->count; i++) {
        const Hvdrun__GpuHealths *gpus = result->hosts[i].gpus;
        for (size_t j = 0; gpus != NULL && j < gpus->n_gpus; j++)
            out->list[out->count++] = make_one(result, i, gpus->gpus[j]);
    }
}

/* Of one figure of all GPUs of this model. `offset`: of the figure in struct one. */
static double median_at(const struct all *all, const char *model, size_t offset)
{
    double *values AUTO_FREE = mem_array(all->count, sizeof(*values));
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->list[i].gpu->name, model) == 0)
            memcpy(&values[count++], (const char *)&all->list[i] + offset, sizeof(*values));
    }
    return outliers_median(values, count);
}

#define MEDIAN(all, one, figure) median_at(all, (one)->gpu->name, offsetof(struct one, figure))

static void judge_errors(const struct all *all, const struct one *one, struct check_findings *out)
{
    const Hvdrun__GpuHealth *gpu = one->gpu;
    const char *trouble = gpu_trouble_text((int)gpu->trouble);
    if (trouble != NULL)
        check_findings_add(out, one->host, true,
                           "GPU %u %s: reset it (nvidia-smi --gpu-reset -i %u) or restart the "
                           "host; if that does not help, have it replaced",
                           gpu->index, trouble, gpu->index);
    if (gpu->remapping_failed)
        check_findings_add(out, one->host, false,
                           "GPU %u could not replace a bad row of its memory: have it replaced",
                           gpu->index);
    else if (gpu->remapping_pending)
        check_findings_add(out, one->host, false,
                           "GPU %u replaces a bad row of its memory at the next reset: end what "
                           "uses it, and reset it (nvidia-smi --gpu-reset -i %u)",
                           gpu->index, gpu->index);
    if (one->ecc > 0)
        check_findings_add(out, one->host, false,
                           "GPU %u has had %.0f uncorrected ECC error%s since its driver was "
                           "loaded (median %.0f): reset it (nvidia-smi --gpu-reset -i %u); if "
                           "more come, have it replaced",
                           gpu->index, one->ecc, one->ecc == 1 ? "" : "s", MEDIAN(all, one, ecc),
                           gpu->index);
}

static void judge_clocks(const struct all *all, const struct one *one, struct check_findings *out)
{
    const Hvdrun__GpuHealth *gpu = one->gpu;
    struct buf why AUTO_BUF = BUF_INIT(TEXT_MAX), heat AUTO_BUF = BUF_INIT(TEXT_MAX);
    for (int i = 0; gpu->has_reasons && clock_reason_name(i) != NULL; i++) {
        const char *name = clock_reason_name(i);
        if ((gpu->reasons & clock_reason_bit(i)) != 0 && clock_reason_is_alarm(name))
            buf_printf(&why, "%s%s", why.length > 0 ? ", " : "", name);
    }
    if (gpu->has_temperature)
        buf_printf(&heat, "%u degrees Celsius (median %.0f)", gpu->celsius,
                   MEDIAN(all, one, celsius));
    if (why.length > 0)
        check_findings_add(out, one->host, false,
                           "GPU %u has lower clocks%s%s: %s: check its cooling and its power",
                           gpu->index, heat.length > 0 ? ", at " : "", buf_text(&heat),
                           buf_text(&why));
    else if (one->celsius >= HOT)
        check_findings_add(out, one->host, false, "GPU %u has %s: check its cooling", gpu->index,
                           buf_text(&heat));
}

static void judge_links(const struct all *all, const struct one *one, struct check_findings *out)
{
    double median = MEDIAN(all, one, links_up);
    if (one->links_up < median)
        check_findings_add(out, one->host, false,
                           "GPU %u has %u NVLinks up (median %.0f): see nvidia-smi nvlink -s -i "
                           "%u, and the log of the fabric manager",
                           one->gpu->index, one->gpu->links_up, median, one->gpu->index);
}

/* A test of hvdrun comes later, so whatever holds memory is not ours. */
static void judge_memory(const struct all *all, const struct one *one, struct check_findings *out)
{
    const Hvdrun__GpuHealth *gpu = one->gpu;
    double median = MEDIAN(all, one, used_mib);
    bool told = false;
    for (size_t i = 0; i < gpu->n_processes; i++) {
        const Hvdrun__GpuProcess *process = gpu->processes[i];
        if (!process->has_memory || process->memory_bytes < HELD)
            continue;
        told = true;
        check_findings_add(out, one->host, false,
                           "GPU %u: %s (pid %u, user %s) holds %" PRIu64
                           " MiB of its memory (median in use %.0f): wait for that process, or "
                           "end it",
                           gpu->index, process->name[0] == '\0' ? "a process" : process->name,
                           process->pid, process->user[0] == '\0' ? "unknown" : process->user,
                           process->memory_bytes / MIB, median);
    }
    if (!told && gpu->has_memory && gpu->memory_used_bytes > UNSEEN &&
        gpu->memory_used_bytes > gpu->memory_bytes / 10)
        check_findings_add(out, one->host, false,
                           "GPU %u: %.0f of %" PRIu64
                           " MiB of its memory are in use (median %.0f), and hvdrun cannot "
                           "see by which process: look for jobs of others, and outside of the "
                           "container",
                           gpu->index, one->used_mib, gpu->memory_bytes / MIB, median);
}

static void judge_speeds(const struct all *all, const struct one *one, struct check_findings *out)
{
    static const struct {
        double share;
        const char *unit, *remedy;
    } kinds[SPEEDS] = {
        [SPEED_COMPUTE] = {GPU_SLOW, "TFLOP/s in bf16",
                           "check its power limit and cooling, or leave it out"},
        [SPEED_MEMORY] = {GPU_SLOW, "GB/s in its memory",
                          "check its clocks and for memory errors, or leave it out"},
        [SPEED_HOST] = {GPU_SLOW_HOST, "GB/s from the host's memory",
                        "check its PCIe link (nvidia-smi -q)"},
    };
    for (int i = 0; i < SPEEDS; i++) {
        size_t offset = offsetof(struct one, speed) + (size_t)i * sizeof(double);
        double median = median_at(all, one->gpu->name, offset);
        if (one->speed[i] < kinds[i].share * median)
            check_findings_add(out, one->host, false,
                               "GPU %u is slow: %.0f %s (median %.0f): a job is as fast as its "
                               "slowest GPU; %s",
                               one->gpu->index, one->speed[i], kinds[i].unit, median,
                               kinds[i].remedy);
    }
}

/* The most frequent model; of equally frequent ones the first. "" is none. */
static const char *usual_model(const struct all *all)
{
    const char *best = "";
    size_t most = 0;
    for (size_t i = 0; i < all->count; i++) {
        size_t same = 0;
        for (size_t j = 0; j < all->count; j++)
            same += strcmp(all->list[i].gpu->name, all->list[j].gpu->name) == 0;
        if (same > most && all->list[i].gpu->name[0] != '\0') {
            best = all->list[i].gpu->name;
            most = same;
        }
    }
    return best;
}

static void judge_model(const struct one *one, const char *usual, struct check_findings *out)
{
    const char *name = one->gpu->name;
    if (name[0] != '\0' && strcmp(name, usual) != 0)
        check_findings_add(out, one->host, false,
                           "GPU %u is of model %s, most are of model %s: a job is as fast as its "
                           "slowest GPU; use hosts with equal ones",
                           one->gpu->index, name, usual);
}

/* The speed of all GPUs of a host together, beside hosts with as many of the same. */
static bool is_alike(const struct check_host *one, const struct check_host *other)
{
    return other->gpu_test.reduce_gpus == one->gpu_test.reduce_gpus && other->gpus != NULL &&
           other->gpus->n_gpus > 0 &&
           strcmp(one->gpus->gpus[0]->name, other->gpus->gpus[0]->name) == 0;
}

static void judge_reduce(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    double *values AUTO_FREE = mem_array((size_t)result->count, sizeof(*values));
    size_t count = 0;
    if (host->gpus == NULL || host->gpus->n_gpus == 0 || host->gpu_test.reduce_gpus == 0)
        return;
    for (int i = 0; i < result->count; i++) {
        if (is_alike(host, &result->hosts[i]))
            values[count++] = result->hosts[i].gpu_test.reduce;
    }
    double median = outliers_median(values, count);
    if (host->gpu_test.reduce < GPU_SLOW * median)
        check_findings_add(out, number, false,
                           "an all-reduce of its %d GPUs is slow: %.0f GB/s (median %.0f): see "
                           "nvidia-smi topo -m and nvidia-smi nvlink -s",
                           host->gpu_test.reduce_gpus, host->gpu_test.reduce, median);
}

static void judge_host(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    unsigned known = host->hello == NULL ? 0 : host->hello->gpus;
    if (host->gpus_missing != NULL)
        check_findings_add(out, number, false,
                           "some of its GPUs are not checked: %s: see nvidia-smi there, and the "
                           "log of the kernel (dmesg)",
                           host->gpus_missing);
    else if (host->gpus != NULL && !host->gpus->library && known > 0)
        check_findings_add(out, number, false,
                           "its GPUs are not checked: the library of NVIDIA's driver "
                           "(libnvidia-ml.so.1) is not there");
    else if (host->gpus != NULL && host->gpus->n_gpus < known)
        check_findings_add(out, number, false,
                           "NVIDIA's library finds %zu of %u GPUs: see the log of the kernel "
                           "(dmesg), and restart the host",
                           host->gpus->n_gpus, known);
    if (host->gpu_test_problem != NULL)
        check_findings_add(out, number, false,
                           "the test of its GPUs failed: %s: see nvidia-smi there, and the log of "
                           "the kernel (dmesg)",
                           host->gpu_test_problem);
}

/* Is it certain that there is no GPU on any host? */
static bool has_none(const struct check_result *result)
{
    bool asked = false;
    for (int i = 0; i < result->count; i++) {
        const struct check_host *host = &result->hosts[i];
        if (host->why != NULL || host->gpus_missing != NULL ||
            (host->hello != NULL && host->hello->gpus > 0) ||
            (host->gpus != NULL && host->gpus->n_gpus > 0))
            return false;
        asked = asked || host->gpus != NULL;
    }
    return asked;
}

void check_judge_gpus(const struct check_result *result, struct check_findings *out)
{
    struct all all;
    gather(result, &all);
    const char *usual = usual_model(&all);
    if (has_none(result))
        check_findings_add(out, -1, true,
                           "no host has a GPU of NVIDIA: use other hosts, or install NVIDIA's "
                           "driver there");
    for (int i = 0; i < result->count; i++) {
        judge_host(result, i, out);
        judge_reduce(result, i, out);
    }
    for (size_t i = 0; i < all.count; i++) {
        const struct one *one = &all.list[i];
        judge_model(one, usual, out);
        judge_errors(&all, one, out);
        judge_clocks(&all, one, out);
        judge_links(&all, one, out);
        judge_memory(&all, one, out);
        judge_speeds(&all, one, out);
    }
    free(all.list);
}
