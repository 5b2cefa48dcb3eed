/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of a Slurm job: what the user asked for as tasks, else the GPUs of each node, else its CPUs
 * divided by those of a task. In a step of its own (srun hvdrun) the counts of tasks are those of
 * the step, which is the launcher; then they say nothing. So it is in a worker, whose counts are
 * those of all workers. docs/slurm.md tells the same to users.
 */
#include "model/allocation/slurm.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "model/allocation/slurm_test.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostlist_range.h"
#include "model/hosts/hosts.h"

/*
 * Slurm's compressed node lists: `n[1-3,7],gpu[001-003]`, `r[1-2]n[1-4]`. Pure. The order is that
 * of `scontrol show hostnames`.
 */

static int add_name(void *context, const char *name, struct error *err)
{
    if (!name_is_safe(name, strlen(name)))
        return error_usage(err, "not a host name");
    strv_add(context, name);
    return 0;
}

int slurm_nodelist_parse(const char *text, struct strv *names, struct error *err)
{
    size_t budget = HOSTS_RANGE_MAX;
    const char *end = text + strlen(text);
    for (const char *at = text;; at++) {
        size_t length = host_entry_length(at, (size_t)(end - at));
        if (hostlist_expand(at, length, &budget, add_name, names, err) < 0)
            return error_wrap(err, "'%s'", plain_show(at, length).text);
        at += length;
        if (*at == '\0')
            return 0;
    }
}

/*
 * Slurm's compressed lists of one number for each node: `2(x3),1` is 2, 2, 2, 1. Pure.
 */

/* Digits at `*at`, which ends up behind them. -1: none, or more than SLURM_COUNT_MAX. */
static int64_t read_count(const char **at)
{
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (**at - '0');
        if (value > SLURM_COUNT_MAX)
            return -1;
    }
    return *at == start ? -1 : value;
}

/* `2` or `2(x3)` at `*at`. false: it is neither. */
static bool read_item(const char **at, int *count, int64_t *times)
{
    int64_t value = read_count(at);
    *times = 1;
    if (value < 1)
        return false;
    *count = (int)value;
    if (strncmp(*at, "(x", 2) != 0)
        return true;
    *at += 2;
    *times = read_count(at);
    if (*times < 1 || **at != ')')
        return false;
    (*at)++;
    return true;
}

int slurm_counts_parse(const char *text, int *out, size_t nodes, struct error *err)
{
    size_t filled = 0;
    const char *at = text;
    for (;;) {
        int count = 0;
        int64_t times = 0;
        if (!read_item(&at, &count, &times) || (*at != ',' && *at != '\0'))
            return error_usage(err, "'%s' is not a list of counts; expected numbers as in 2(x3),1",
                               plain_show(text, strlen(text)).text);
        if ((uint64_t)times > nodes - filled)
            return error_usage(err, "'%s' counts more than the %zu nodes of the job",
                               plain_show(text, strlen(text)).text, nodes);
        for (; times > 0; times--)
            out[filled++] = count;
        if (*at == '\0')
            break;
        at++;
    }
    if (filled == nodes)
        return 0;
    return error_usage(err, "'%s' counts %zu of the %zu nodes of the job",
                       plain_show(text, strlen(text)).text, filled, nodes);
}

/* Higher step numbers mean the batch script, the interactive shell, ... */
#define STEP_FIRST_SPECIAL 4294967280
#define GPU_MAX 100000

struct slurm {
    char *const *env;
    struct strv names;
    int *slots; /* of each name */
    bool in_step;
    int64_t tasks; /* that were asked for; 0: not said */
};

/* Of two spellings, the newer one first. */
static const char *either(char *const *env, const char *name, const char *old)
{
    return allocation_value(env, name) != NULL ? name : old;
}

static const char *nodelist_name(char *const *env)
{
    return either(env, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
}

static bool is_het(char *const *env)
{
    return allocation_value(env, "SLURM_JOB_NODELIST_HET_GROUP_0") != NULL;
}

bool allocation_slurm_has(char *const *env, const char **file)
{
    *file = NULL;
    return allocation_value(env, either(env, "SLURM_JOB_ID", "SLURM_JOBID")) != NULL &&
           (allocation_value(env, nodelist_name(env)) != NULL || is_het(env));
}

/* 1: in a step that srun started; 0: in the batch script, or at an interactive prompt. */
static int in_own_step(char *const *env, struct error *err)
{
    int64_t step = 0;
    const char *name = either(env, "SLURM_STEP_ID", "SLURM_STEPID");
    int found = allocation_number(env, name, 0, UINT32_MAX, &step, err);
    return found == 1 ? step < STEP_FIRST_SPECIAL : found;
}

int allocation_slurm_twin(char *const *env)
{
    int64_t tasks = 0, task = 0;
    if (allocation_value(env, "HVDRUN_RANK") != NULL || in_own_step(env, NULL) != 1)
        return -1; /* a worker of ours has the variables of srun but is not a task of it */
    if (allocation_number(env, "SLURM_STEP_NUM_TASKS", 2, INT_MAX, &tasks, NULL) != 1 ||
        allocation_number(env, "SLURM_PROCID", 0, INT_MAX, &task, NULL) != 1)
        return -1;
    return (int)task;
}

static int read_counts(const struct slurm *slurm, const char *name, int *out, struct error *err)
{
    const char *text = allocation_value(slurm->env, name);
    if (text == NULL)
        return 0;
    if (slurm_counts_parse(text, out, slurm->names.count, err) < 0)
        return error_wrap(err, "%s", name);
    return 1;
}

/* `4`, `a100:4`, `a100:2,v100:1`: how many GPUs. */
static int read_gpus(char *const *env, const char *name, int64_t *out, struct error *err)
{
    int64_t sum = 0;
    const char *text = allocation_value(env, name);
    if (text == NULL)
        return 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        char *word AUTO_FREE = mem_strndup(at, length);
        const char *colon = strrchr(word, ':');
        const char *digits = colon == NULL ? word : colon + 1;
        int64_t count = 0;
        if (digits[0] < '0' || digits[0] > '9' ||
            parse_int(digits, 0, GPU_MAX - sum, &count, NULL) < 0)
            return error_usage(err, "%s: '%s' is not a number of GPUs; expected 4 or TYPE:4", name,
                               plain_show(text, strlen(text)).text);
        sum += count;
        at += length;
        if (*at == '\0')
            break;
    }
    *out = sum;
    return 1;
}

static void count_one(void *context, int64_t gpu)
{
    (void)gpu;
    ++*(int64_t *)context;
}

/* GPUs of the job on this node, by number or as the list of them. */
static int read_gpus_here(char *const *env, int64_t *out, struct error *err)
{
    int found = read_gpus(env, "SLURM_GPUS_ON_NODE", out, err);
    const char *list = allocation_value(env, "SLURM_JOB_GPUS");
    if (found != 0 || list == NULL)
        return found;
    *out = 0;
    if (parse_ranks(list, GPU_MAX, count_one, out, NULL) == 0)
        return 1;
    return error_usage(err,
                       "SLURM_JOB_GPUS: '%s' is not a list of GPUs; expected one as in 0,1,4-7",
                       plain_show(list, strlen(list)).text);
}

/* GPUs of every node: `*out`, 0 when the job has none. -1 also when they differ and only some are
 * known. */
static int find_gpus(const struct slurm *slurm, int64_t *out, struct error *err)
{
    int64_t here = 0, all = 0, nodes = (int64_t)slurm->names.count;
    *out = 0;
    int found = read_gpus(slurm->env, "SLURM_GPUS_PER_NODE", out, err);
    if (found != 0)
        return found;
    int has_here = read_gpus_here(slurm->env, &here, err);
    int has_all = has_here < 0 ? -1 : read_gpus(slurm->env, "SLURM_GPUS", &all, err);
    if (has_here < 0 || has_all < 0)
        return -1;
    *out = has_here == 1 ? here : 0;
    if (has_all == 0 || all == 0 || (has_here == 1 && here * nodes == all))
        return 0;
    *out = all;
    if (nodes == 1)
        return 0;
    return error_usage(
        err,
        "SLURM_GPUS: %lld GPUs on %lld nodes, but Slurm does not say how many each node has; "
        "submit the job with --gpus-per-node, or with --ntasks for the number of workers",
        (long long)all, (long long)nodes);
}

static int slots_by_tasks(struct slurm *slurm, struct error *err)
{
    int64_t each = 0;
    int found =
        allocation_number(slurm->env, "SLURM_NTASKS_PER_NODE", 1, SLURM_COUNT_MAX, &each, err);
    if (found < 0 || slurm->in_step || (slurm->tasks == 0 && found == 0))
        return found < 0 ? -1 : 0;
    int listed = read_counts(slurm, "SLURM_TASKS_PER_NODE", slurm->slots, err);
    if (listed != 0 || found == 0)
        return listed;
    for (size_t i = 0; i < slurm->names.count; i++)
        slurm->slots[i] = (int)each;
    return 1;
}

static int slots_by_gpus(struct slurm *slurm, struct error *err)
{
    int64_t gpus = 0, tasks = 1;
    if (find_gpus(slurm, &gpus, err) < 0 ||
        allocation_number(slurm->env, "SLURM_NTASKS_PER_GPU", 1, 1000, &tasks, err) < 0)
        return -1;
    for (size_t i = 0; i < slurm->names.count && gpus > 0; i++)
        slurm->slots[i] = (int)(gpus * tasks);
    return gpus > 0;
}

static int slots_by_cpus(struct slurm *slurm, struct error *err)
{
    int64_t per_task = 1;
    if (allocation_number(slurm->env, "SLURM_CPUS_PER_TASK", 1, SLURM_COUNT_MAX, &per_task, err) <
        0)
        return -1;
    int found = read_counts(slurm, "SLURM_JOB_CPUS_PER_NODE", slurm->slots, err);
    for (size_t i = 0; i < slurm->names.count; i++) {
        int64_t slots = found == 1 ? slurm->slots[i] / per_task : 1;
        slurm->slots[i] = slots > 0 ? (int)slots : 1;
    }
    return found < 0 ? -1 : 1;
}

static int read_numbers(const struct slurm *slurm, struct allocation *out, struct error *err)
{
    int64_t restarts = 0;
    if (allocation_number(slurm->env, "SLURM_RESTART_COUNT", 0, INT_MAX, &restarts, err) < 0 ||
        allocation_number(slurm->env, "SLURM_JOB_END_TIME", 0, INT64_MAX / 1000000000, &out->end_s,
                          err) < 0)
        return -1;
    out->restart_count = (int)restarts;
    out->np = slurm->in_step ? 0 : (int)slurm->tasks;
    return 0;
}

static int fill(struct slurm *slurm, struct allocation *out, struct error *err)
{
    const char *list = nodelist_name(slurm->env);
    int step = in_own_step(slurm->env, err);
    if (step < 0 ||
        allocation_number(slurm->env, either(slurm->env, "SLURM_NTASKS", "SLURM_NPROCS"), 1,
                          SLURM_COUNT_MAX, &slurm->tasks, err) < 0)
        return -1;
    /* a worker of ours: its variables are those of the job of workers that it belongs to */
    slurm->in_step = step == 1 || allocation_value(slurm->env, "HVDRUN_RANK") != NULL;
    if (slurm_nodelist_parse(allocation_value(slurm->env, list), &slurm->names, err) < 0)
        return error_wrap(err, "%s", list);
    slurm->slots = mem_array(slurm->names.count, sizeof(*slurm->slots));
    int done = slots_by_tasks(slurm, err);
    if (done == 0)
        done = slots_by_gpus(slurm, err);
    if (done == 0)
        done = slots_by_cpus(slurm, err);
    if (done < 0 || read_numbers(slurm, out, err) < 0)
        return -1;
    for (size_t i = 0; i < slurm->names.count; i++)
        hosts_add(&out->hosts, slurm->names.items[i], slurm->slots[i], true);
    const char *here = allocation_value(slurm->env, "SLURMD_NODENAME");
    if (here != NULL && hosts_find(&out->hosts, here) != NULL)
        out->here = mem_strdup(here);
    return 0;
}

int allocation_slurm_parse(const struct allocation_source *source, struct allocation *out,
                           struct error *err)
{
    const char *id =
        allocation_value(source->env, either(source->env, "SLURM_JOB_ID", "SLURM_JOBID"));
    if (strspn(id, "0123456789") != strlen(id) || strlen(id) > 10)
        return error_usage(err, "SLURM_JOB_ID: '%s' is not a job number",
                           plain_show(id, strlen(id)).text);
    out->job_id = mem_strdup(id);
    if (is_het(source->env))
        return error_usage(err,
                           "Slurm job %s is heterogeneous, and hvdrun cannot start its parts "
                           "together; submit a job with one part, or give -H and --scheduler none",
                           id);
    struct slurm slurm = {.env = source->env};
    int result = fill(&slurm, out, err);
    strv_destroy(&slurm.names);
    free(slurm.slots);
    return result;
}
