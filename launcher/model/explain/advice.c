/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explain/advice.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/explain/gpu_signs.h"
#include "model/explain/host_signs.h"

/* Each rule returns its advice, which the caller frees; NULL: it does not apply. */
typedef char *rule(const struct explain_facts *facts, const struct explain_rank *rank);

static const struct explain_host *host_of(const struct explain_facts *facts,
                                          const struct explain_rank *rank)
{
    for (size_t i = 0; rank != NULL && i < facts->host_count; i++) {
        if (strcmp(facts->hosts[i].host, rank->host) == 0)
            return &facts->hosts[i];
    }
    return NULL;
}

static bool is_kind(const struct explain_facts *facts, const char *kind)
{
    return facts->kind != NULL && strcmp(facts->kind, kind) == 0;
}

static char *out_of_memory(const struct explain_facts *facts, const struct explain_rank *rank)
{
    const struct explain_host *host = host_of(facts, rank);
    bool killed = rank != NULL && rank->ended && rank->signaled && rank->code == SIGKILL;
    if (rank == NULL || !(rank->oom || (killed && host != NULL && host_signs_memory_kills(host))))
        return NULL;
    return mem_printf("give rank %d more memory, or start fewer ranks on %s; 'hvdrun top' shows "
                      "how much they use",
                      rank->rank, rank->host);
}

static char *killed(const struct explain_facts *facts, const struct explain_rank *rank)
{
    const struct explain_host *host = host_of(facts, rank);
    bool by_others = rank != NULL && rank->ended && rank->signaled && rank->code == SIGKILL &&
                     !rank->consequence && !rank->oom;
    if (!by_others || (host != NULL && host_signs_memory_kills(host)))
        return NULL;
    return mem_printf("hvdrun did not send that SIGKILL: look in the logs of %s for a scheduler, "
                      "a person or the OOM killer that did",
                      rank->host);
}

static char *full_folder(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    for (size_t i = 0; i < facts->host_count; i++) {
        char *folder AUTO_FREE = host_signs_full_folder(&facts->hosts[i]);
        if (folder != NULL)
            return mem_printf("free some space in %s on %s", folder, facts->hosts[i].host);
    }
    return NULL;
}

static char *crash(const struct explain_facts *facts, const struct explain_rank *rank)
{
    const struct explain_host *host = host_of(facts, rank);
    bool crashed = rank != NULL && rank->ended && rank->signaled &&
                   (rank->code == SIGSEGV || rank->code == SIGBUS || rank->code == SIGILL ||
                    rank->code == SIGFPE || rank->code == SIGABRT);
    if (!crashed)
        return NULL;
    if (rank->core)
        return mem_printf("rank %d has left a core file on %s: open it with a debugger", rank->rank,
                          rank->host);
    const char *cores = host == NULL || host->cores == NULL ? "" : host->cores;
    if (strstr(cores, "the soft limit is 0") != NULL)
        return mem_strdup("for a core file of the next crash, run 'ulimit -c unlimited' before "
                          "hvdrun");
    if (strstr(cores, "core_pattern: |") != NULL)
        return mem_printf("look for a core file with 'coredumpctl list' on %s", rank->host);
    return NULL;
}

static char *hang(const struct explain_facts *facts, const struct explain_rank *rank)
{
    if (!is_kind(facts, "hang"))
        return facts->ended && facts->status == STATUS_HANG
                   ? mem_strdup("start the job again with --evidence DIR, which keeps the stacks "
                                "of all ranks")
                   : NULL;
    if (rank == NULL)
        return mem_strdup("stacks.txt shows where all ranks wait; no rank stands out");
    return mem_printf(
        "stacks.txt has two stacks of rank %d, one second apart; the other ranks most "
        "likely wait for it",
        rank->rank);
}

/* The host of the rank first. NULL: none has such a fault. */
static const struct explain_host *host_with(const struct explain_facts *facts,
                                            const struct explain_rank *rank, enum gpu_fault fault)
{
    const struct explain_host *its = host_of(facts, rank);
    if (its != NULL && gpu_signs_fault(its, facts->started_s) == fault)
        return its;
    for (size_t i = 0; i < facts->host_count; i++) {
        if (gpu_signs_fault(&facts->hosts[i], facts->started_s) == fault)
            return &facts->hosts[i];
    }
    return NULL;
}

static char *gpu(const struct explain_facts *facts, const struct explain_rank *rank)
{
    const struct explain_host *host = host_with(facts, rank, GPU_FAULT_GPU);
    if (host != NULL)
        return mem_printf("start the next job without %s, and have its GPUs checked: "
                          "'nvidia-smi -q' there shows their state",
                          host->host);
    host = host_with(facts, rank, GPU_FAULT_PROGRAM);
    if (host == NULL)
        return NULL;
    return mem_printf("the XID on %s is most often an error of the program: "
                      "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer shows where",
                      host->host);
}

/* What NCCL and PyTorch know of the collectives. */
static char *collectives(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    const char *nccl = facts->nccl == NULL ? "" : facts->nccl;
    char *counts AUTO_FREE =
        mem_printf("%s%s", nccl, nccl[0] == '\0' ? "" : " has NCCL's own numbers of operations");
    if (facts->flights == 0)
        return nccl[0] == '\0' ? NULL : mem_strdup(counts);
    return mem_printf("%s%sflight_recorder has the last collectives of %zu rank%s, and "
                      "'torchfrtrace --prefix rank_ flight_recorder' compares them",
                      counts, nccl[0] == '\0' ? "" : "; ", facts->flights,
                      facts->flights == 1 ? "" : "s");
}

static char *timeout(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    if (!is_kind(facts, "timeout") && !(facts->ended && facts->status == STATUS_TIMEOUT))
        return NULL;
    return mem_strdup("give a longer --timeout, or find out what the ranks did: stacks.txt, or the "
                      "report");
}

static char *lost_host(const struct explain_facts *facts, const struct explain_rank *rank)
{
    for (size_t i = 0; rank == NULL && i < facts->host_count; i++) {
        if (facts->hosts[i].lost)
            return mem_printf("check the power, the network and the kernel's log of %s; an elastic "
                              "job (--min-np) goes on without it",
                              facts->hosts[i].host);
    }
    return NULL;
}

static char *not_found(const struct explain_facts *facts, const struct explain_rank *rank)
{
    bool not_run = facts->ended &&
                   (facts->status == STATUS_NOT_FOUND || facts->status == STATUS_NOT_EXECUTABLE);
    if (!not_run)
        return NULL;
    return mem_printf("check that the program exists and can be run on %s, under the same path",
                      rank != NULL ? rank->host : "each host");
}

static char *variables(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    if (facts->differ.count == 0)
        return NULL;
    return mem_strdup("if the variables that differ should be equal, set them with -x");
}

static char *own_error(const struct explain_facts *facts, const struct explain_rank *rank)
{
    bool failed = rank != NULL && rank->ended && !rank->signaled && rank->code != 0;
    bool wrote = (facts->said != NULL && facts->said[0] != '\0') ||
                 (facts->printed != NULL && facts->printed[0] != '\0');
    if (!failed || !wrote)
        return NULL;
    return mem_printf("rank %d most likely says why it ended: look at its last lines%s", rank->rank,
                      facts->has_folder ? " in lines.txt" : "");
}

static char *interrupted(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    if (facts->cause == NULL || strcmp(facts->cause, "interrupted") != 0)
        return NULL;
    return mem_strdup("nothing is wrong with the ranks: hvdrun got a signal, from you or from a "
                      "scheduler");
}

static char *gone(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    return facts->gone ? mem_strdup("something killed hvdrun itself, or its host went down; "
                                    "'hvdrun logs' has the output up to then")
                       : NULL;
}

static char *success(const struct explain_facts *facts, const struct explain_rank *rank)
{
    (void)rank;
    return facts->ended && facts->status == 0 ? mem_strdup("nothing") : NULL;
}

static char *otherwise(const struct explain_facts *facts)
{
    return mem_strdup(facts->has_folder
                          ? "look at stacks.txt and lines.txt in the folder"
                          : "start the job again with --evidence DIR, which keeps more facts");
}

void explain_advice(const struct explain_facts *facts, const struct explain_rank *rank,
                    void (*each)(void *context, const char *text), void *context)
{
    static rule *const rules[] = {out_of_memory, gpu,         killed,      crash,     full_folder,
                                  hang,          collectives, timeout,     lost_host, not_found,
                                  own_error,     variables,   interrupted, gone,      success};
    int found = 0;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        char *text AUTO_FREE = rules[i](facts, rank);
        if (text == NULL)
            continue;
        each(context, text);
        found++;
    }
    if (found > 0)
        return;
    char *text AUTO_FREE = otherwise(facts);
    each(context, text);
}
