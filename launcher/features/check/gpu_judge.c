/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check.h"

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

enum figure { CELSIUS, USED_MIB, LINKS_UP, ECC, SPEED, FIGURES = SPEED + SPEEDS };

struct model {
    const char *name; /* "": not known */
    size_t count;
    double median[FIGURES]; /* of all GPUs of this model; NAN: not known */
};

/* A GPU of any host. */
struct one {
    int host;
    const Hvdrun__GpuHealth *gpu;
    size_t model;
    double figure[FIGURES];
};

struct all {
    struct one *list;
    size_t count;
    struct model *models;
    size_t model_count;
};

uint64_t check_gpu_errors(const Hvdrun__GpuHealth *gpu)
{
    return gpu->n_ecc_errors == 4 ? gpu->ecc_errors[2] : UINT64_MAX;
}

static size_t model_of(struct all *all, const char *name)
{
    for (size_t i = 0; i < all->model_count; i++) {
        if (strcmp(all->models[i].name, name) == 0)
            return i;
    }
    MEM_ADD(all->models, all->model_count) = (struct model){.name = name};
    return all->model_count - 1;
}

static void add_gpu(const struct check_host *host, int number, const Hvdrun__GpuHealth *gpu,
                    struct all *all)
{
    const struct gpu_speed *speed = gpu_test_find(&host->gpu_test, gpu->uuid);
    struct one *one = &all->list[all->count++];
    *one = (struct one){.host = number, .gpu = gpu, .model = model_of(all, gpu->name)};
    all->models[one->model].count++;
    one->figure[CELSIUS] = gpu->has_temperature ? (double)gpu->celsius : (double)NAN;
    one->figure[USED_MIB] = gpu->has_memory ? (double)(gpu->memory_used_bytes / MIB) : (double)NAN;
    one->figure[LINKS_UP] = gpu->links > 0 ? (double)gpu->links_up : (double)NAN;
    uint64_t errors = check_gpu_errors(gpu);
    one->figure[ECC] = errors == UINT64_MAX ? (double)NAN : (double)errors;
    for (int i = 0; i < SPEEDS; i++)
        one->figure[SPEED + i] = speed == NULL ? (double)NAN : speed->value[i];
}

static void find_medians(struct all *all, size_t model)
{
    double *values AUTO_FREE = mem_array(all->count, sizeof(*values));
    for (int figure = 0; figure < FIGURES; figure++) {
        size_t count = 0;
        for (size_t i = 0; i < all->count; i++) {
            if (all->list[i].model == model)
                values[count++] = all->list[i].figure[figure];
        }
        all->models[model].median[figure] = outliers_median(values, count);
    }
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
            add_gpu(&result->hosts[i], i, gpus->gpus[j], out);
    }
    for (size_t i = 0; i < out->model_count; i++)
        find_medians(out, i);
}

/* The host is bad for that. A reason of which it is not sure only gets a warning. */
#define ADD_BAD_IF(sure, ...) (check_findings_add(__VA_ARGS__)->bad = (sure))
#define ADD_BAD(...) ADD_BAD_IF(true, __VA_ARGS__)

static double median_of(const struct all *all, const struct one *one, int figure)
{
    return all->models[one->model].median[figure];
}

static void judge_errors(const struct all *all, const struct one *one, struct check_findings *out)
{
    const Hvdrun__GpuHealth *gpu = one->gpu;
    const char *trouble = gpu_trouble_text((int)gpu->trouble);
    if (trouble != NULL)
        ADD_BAD(out, one->host, true,
                "GPU %u %s: reset it (nvidia-smi --gpu-reset -i %u) or restart the "
                "host; if that does not help, have it replaced",
                gpu->index, trouble, gpu->index);
    if (gpu->remapping_failed)
        ADD_BAD(out, one->host, false,
                "GPU %u could not replace a bad row of its memory: have it replaced", gpu->index);
    else if (gpu->remapping_pending)
        ADD_BAD(out, one->host, false,
                "GPU %u replaces a bad row of its memory at the next reset: end what "
                "uses it, and reset it (nvidia-smi --gpu-reset -i %u)",
                gpu->index, gpu->index);
    if (one->figure[ECC] > 0)
        ADD_BAD(out, one->host, false,
                "GPU %u has had %.0f uncorrected ECC error%s since its driver was "
                "loaded (median %.0f): reset it (nvidia-smi --gpu-reset -i %u); if "
                "more come, have it replaced",
                gpu->index, one->figure[ECC], one->figure[ECC] == 1 ? "" : "s",
                median_of(all, one, ECC), gpu->index);
}

/* Why its clocks are low. */
static void list_alarms(const Hvdrun__GpuHealth *gpu, struct buf *out)
{
    for (int i = 0; gpu->has_reasons && clock_reason_name(i) != NULL; i++) {
        const char *name = clock_reason_name(i);
        if ((gpu->reasons & clock_reason_bit(i)) != 0 && clock_reason_is_alarm(name))
            buf_printf(out, "%s%s", out->length > 0 ? ", " : "", name);
    }
}

static bool has_unseen(const Hvdrun__GpuHealth *gpu)
{
    return gpu->has_memory && gpu->memory_used_bytes > UNSEEN &&
           gpu->memory_used_bytes > gpu->memory_bytes / 10;
}

/* Others use it, or it is hot: then a GPU that is slow may be a good one. */
static bool is_disturbed(const Hvdrun__GpuHealth *gpu)
{
    struct buf alarms AUTO_BUF = BUF_INIT(TEXT_MAX);
    list_alarms(gpu, &alarms);
    return gpu->n_processes > 0 || has_unseen(gpu) || alarms.length > 0 ||
           (gpu->has_temperature && gpu->celsius >= HOT);
}

static bool has_disturbed(const struct check_host *host)
{
    for (size_t i = 0; i < host->gpus->n_gpus; i++) {
        if (is_disturbed(host->gpus->gpus[i]))
            return true;
    }
    return false;
}

static void judge_clocks(const struct all *all, const struct one *one, struct check_findings *out)
{
    const Hvdrun__GpuHealth *gpu = one->gpu;
    struct buf why AUTO_BUF = BUF_INIT(TEXT_MAX), heat AUTO_BUF = BUF_INIT(TEXT_MAX);
    list_alarms(gpu, &why);
    if (gpu->has_temperature)
        buf_printf(&heat, "%u degrees Celsius (median %.0f)", gpu->celsius,
                   median_of(all, one, CELSIUS));
    if (why.length > 0)
        check_findings_add(out, one->host, false,
                           "GPU %u has lower clocks%s%s: %s: check its cooling and its power",
                           gpu->index, heat.length > 0 ? ", at " : "", buf_text(&heat),
                           buf_text(&why));
    else if (one->figure[CELSIUS] >= HOT)
        check_findings_add(out, one->host, false, "GPU %u has %s: check its cooling", gpu->index,
                           buf_text(&heat));
}

static void judge_links(const struct all *all, const struct one *one, struct check_findings *out)
{
    double median = median_of(all, one, LINKS_UP);
    if (one->figure[LINKS_UP] < median)
        ADD_BAD(out, one->host, false,
                "GPU %u has %u NVLinks up (median %.0f): see nvidia-smi nvlink -s -i "
                "%u, and the log of the fabric manager",
                one->gpu->index, one->gpu->links_up, median, one->gpu->index);
}

/* A test of hvdrun comes later, so whatever holds memory is not ours. */
static void judge_memory(const struct all *all, const struct one *one, struct check_findings *out)
{
    const Hvdrun__GpuHealth *gpu = one->gpu;
    double median = median_of(all, one, USED_MIB);
    bool told = false;
    for (size_t i = 0; gpu->has_memory && i < gpu->n_processes; i++) {
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
    if (!told && has_unseen(gpu))
        check_findings_add(out, one->host, false,
                           "GPU %u: %.0f of %" PRIu64
                           " MiB of its memory are in use (median %.0f), and hvdrun cannot "
                           "see by which process: look for jobs of others, and outside of the "
                           "container",
                           gpu->index, one->figure[USED_MIB], gpu->memory_bytes / MIB, median);
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
        double speed = one->figure[SPEED + i], median = median_of(all, one, SPEED + i);
        if (speed < kinds[i].share * median)
            ADD_BAD_IF(!is_disturbed(one->gpu), out, one->host, false,
                       "GPU %u is slow: %.0f %s (median %.0f): a job is as fast as its "
                       "slowest GPU; %s",
                       one->gpu->index, speed, kinds[i].unit, median, kinds[i].remedy);
    }
}

/* The most frequent model; of equally frequent ones the first. "": none is known. */
static const char *usual_model(const struct all *all)
{
    const char *best = "";
    size_t most = 0;
    for (size_t i = 0; i < all->model_count; i++) {
        const struct model *model = &all->models[i];
        if (model->count > most && model->name[0] != '\0') {
            best = model->name;
            most = model->count;
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
           other->gpus->n_gpus > 0 && one->gpus != NULL && one->gpus->n_gpus > 0 &&
           strcmp(one->gpus->gpus[0]->name, other->gpus->gpus[0]->name) == 0;
}

static double speed_of(const struct check_host *host, bool between)
{
    return between ? host->between : host->gpu_test.reduce;
}

static double median_of_alike(const struct check_result *result, const struct check_host *host,
                              bool between)
{
    double *values AUTO_FREE = mem_array((size_t)result->count, sizeof(*values));
    size_t count = 0;
    for (int i = 0; i < result->count; i++) {
        const struct check_host *other = &result->hosts[i];
        if (speed_of(other, between) > 0 && is_alike(host, other))
            values[count++] = speed_of(other, between);
    }
    return outliers_median(values, count);
}

static void judge_reduce(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    double median = median_of_alike(result, host, false);
    if (host->gpu_test.reduce > 0 && host->gpu_test.reduce < GPU_SLOW * median)
        ADD_BAD_IF(!has_disturbed(host), out, number, false,
                   "an all-reduce of its %d GPUs is slow: %.0f GB/s (median %.0f): see "
                   "nvidia-smi topo -m and nvidia-smi nvlink -s",
                   host->gpu_test.reduce_gpus, host->gpu_test.reduce, median);
}

/* How many GPUs the library should find at least; 0: not known. The agent counts the words of
 * CUDA_VISIBLE_DEVICES, and several of them can be parts of one GPU (MIG). */
static unsigned gpus_known(const struct check_host *host)
{
    unsigned seen = host->hello == NULL ? 0 : host->hello->gpus;
    size_t whole = host->facts == NULL ? 0 : host->facts->n_gpus;
    return whole > 0 && whole < seen ? (unsigned)whole : seen;
}

/* With the better one of its two neighbours, beside the same of like hosts. With one neighbour
 * only, that may be the slow one. */
static void judge_between(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    double median = median_of_alike(result, host, true);
    if (!result->simulated && host->between > 0 && host->between < GPU_SLOW * median)
        ADD_BAD_IF(host->between_pairs > 1 && !has_disturbed(host), out, number, false,
                   "all-reduces with other hosts are slow: %.2f GB/s (median %.2f): check its "
                   "network (hvdrun check --net)",
                   host->between, median);
    if (host->between_problem != NULL)
        check_findings_add(out, number, false,
                           "an all-reduce with %s failed: %s: check the network and firewalls "
                           "between them",
                           result->hosts[host->between_peer].name, host->between_problem);
}

static void judge_host(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    unsigned known = gpus_known(host);
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
        ADD_BAD(out, number, false,
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
        judge_between(result, i, out);
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
    free(all.models);
}
