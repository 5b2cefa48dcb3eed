/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "features/evidence/error_text.h"

struct view view_of(const struct explain_facts *facts, const struct explain_rank *rank)
{
    struct view v = {.facts = facts, .rank = rank};
    for (size_t i = 0; rank != NULL && i < facts->host_count && v.host == NULL; i++)
        v.host = strcmp(facts->hosts[i].host, rank->host) == 0 ? &facts->hosts[i] : NULL;
    return v;
}

/* ---- what facts are made of ---- */

static bool is_kind(const struct view *v, const char *kind)
{
    return text_same(v->facts->kind, kind);
}

static bool has_cause(const struct view *v, const char *cause)
{
    return text_same(v->facts->cause, cause);
}

static bool is_about(const struct view *v, const char *words)
{
    return v->facts->what != NULL && strstr(v->facts->what, words) != NULL;
}

static bool ended_with(const struct view *v, int status)
{
    return v->facts->ended && v->facts->status == status;
}

const struct explain_host *view_lost_host(const struct view *v)
{
    for (size_t i = 0; v->rank == NULL && i < v->facts->host_count; i++) {
        if (v->facts->hosts[i].lost)
            return &v->facts->hosts[i];
    }
    return NULL;
}

/* The host of the rank first. */
const struct explain_host *view_gpu_host(const struct view *v, enum gpu_fault fault)
{
    const struct explain_facts *facts = v->facts;
    if (v->host != NULL && gpu_signs_fault(v->host, facts->started_s) == fault)
        return v->host;
    for (size_t i = 0; i < facts->host_count; i++) {
        if (gpu_signs_fault(&facts->hosts[i], facts->started_s) == fault)
            return &facts->hosts[i];
    }
    return NULL;
}

static bool is_full(const struct explain_host *host)
{
    char *folder AUTO_FREE = host == NULL ? NULL : host_signs_full_folder(host);
    return folder != NULL;
}

const struct explain_host *view_full_host(const struct view *v)
{
    for (size_t i = 0; i < v->facts->host_count; i++) {
        if (is_full(&v->facts->hosts[i]))
            return &v->facts->hosts[i];
    }
    return NULL;
}

void view_collectives(const struct view *v, int64_t *behind, int64_t *ahead)
{
    *behind = *ahead = 0;
    for (size_t i = 0; i < v->facts->rank_count; i++) {
        int64_t its = v->facts->ranks[i].collective;
        if (its <= 0)
            continue;
        *behind = *behind == 0 || its < *behind ? its : *behind;
        *ahead = its > *ahead ? its : *ahead;
    }
}

/* In a hang and at a time limit, what ranks wrote is old. */
static bool is_culprit(const struct view *v)
{
    return v->rank != NULL && !is_kind(v, "hang") && !fact_timeout(v) &&
           !ended_with(v, STATUS_HANG);
}

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
           signal == SIGABRT;
}

static bool has_ended(const struct view *v)
{
    return is_culprit(v) && v->rank->ended && !v->rank->consequence;
}

static bool has_crashed(const struct view *v)
{
    return fact_killed(v) && is_crash(v->rank->code);
}

static bool has_code(const struct view *v)
{
    return has_ended(v) && !v->rank->signaled;
}

static bool memory_ran_out(const struct view *v)
{
    return v->rank->oom || (v->host != NULL && host_signs_memory_kills(v->host) > 0);
}

static bool says_of_cores(const struct view *v, const char *words)
{
    return has_crashed(v) && v->host != NULL && v->host->cores != NULL &&
           strstr(v->host->cores, words) != NULL;
}

/* ---- the facts ---- */

/* An error that it has written may be the reason. A signal from outside needs none, and after a
 * crash, only text that is an error counts. */
bool fact_failed(const struct view *v)
{
    if (!is_culprit(v))
        return false;
    return !fact_killed(v) || (is_crash(v->rank->code) && v->error->found);
}

bool fact_out_of_memory(const struct view *v)
{
    bool by_kernel = v->rank != NULL && v->rank->ended && v->rank->signaled &&
                     v->rank->code == SIGKILL && !v->rank->consequence;
    return v->rank != NULL && (v->rank->oom || (by_kernel && memory_ran_out(v)));
}

bool fact_raised(const struct view *v)
{
    char *place AUTO_FREE = fact_failed(v) ? error_text_place(v->error) : NULL;
    return place != NULL;
}

bool fact_behind(const struct view *v)
{
    int64_t first, last;
    view_collectives(v, &first, &last);
    return fact_failed(v) && first < last;
}

#define FACT(name, holds)                  \
    bool fact_##name(const struct view *v) \
    {                                      \
        return holds;                      \
    }

/* clang-format off */
/* The job */
FACT(always, v != NULL)
FACT(has_folder, v->facts->has_folder)
FACT(differ, v->facts->differ.count > 0)
FACT(nccl_answered, v->facts->nccl != NULL && v->facts->nccl[0] != '\0')
FACT(has_flights, v->facts->flights > 0)
FACT(nccl_and_flights, fact_nccl_answered(v) && fact_has_flights(v))
FACT(gone, v->facts->gone)
FACT(success, ended_with(v, 0))
FACT(stopped, has_cause(v, "stopped"))
FACT(interrupted, has_cause(v, "interrupted"))
FACT(hung_up, fact_interrupted(v) && ended_with(v, 128 + SIGHUP))
FACT(reader_gone, fact_interrupted(v) && ended_with(v, 128 + SIGPIPE))
FACT(ctrl_c, fact_interrupted(v) && ended_with(v, 128 + SIGINT))
FACT(timeout, is_kind(v, "timeout") || ended_with(v, STATUS_TIMEOUT))
FACT(hang_of_nobody, is_kind(v, "hang"))
FACT(hang_of_rank, fact_hang_of_nobody(v) && v->rank != NULL)
FACT(hang_of_stopped, fact_hang_of_rank(v) && is_about(v, "stopped (SIG"))
FACT(hang_of_frozen, fact_hang_of_rank(v) && is_about(v, "frozen by"))
FACT(hang_of_starved, fact_hang_of_rank(v) && is_about(v, "out of memory in its cgroup"))
FACT(hang_of_left, fact_hang_of_rank(v) && is_about(v, "without MPI_Finalize"))
FACT(hang_without_folder, ended_with(v, STATUS_HANG))

/* Hosts */
FACT(host_was_lost, view_lost_host(v) != NULL)
FACT(agent_was_killed,
     fact_host_was_lost(v) && (is_about(v, "killed by SIG") || is_about(v, "(SIGKILL)")))
FACT(gpu_is_sick, view_gpu_host(v, GPU_FAULT_GPU) != NULL)
FACT(gpu_was_misused, view_gpu_host(v, GPU_FAULT_PROGRAM) != NULL)
FACT(full_host, view_full_host(v) != NULL)
FACT(full_folder, is_full(v->host))

/* The rank */
FACT(killed, has_ended(v) && v->rank->signaled)
FACT(signal_by_request, fact_killed(v) && v->rank->request != NULL)
FACT(memory_of_child, fact_failed(v) && memory_ran_out(v))
FACT(left_early, has_code(v) && v->rank->code == 0)
FACT(silent, has_code(v) && v->rank->silent && v->error->count == 0)
FACT(wrote, fact_failed(v) && v->error->count > 0)
FACT(not_run, ended_with(v, STATUS_NOT_FOUND) || ended_with(v, STATUS_NOT_EXECUTABLE))
FACT(core_is_there, has_crashed(v) && v->rank->core)
FACT(core_is_off, says_of_cores(v, "the soft limit is 0"))
FACT(core_is_piped, says_of_cores(v, "core_pattern: |"))
/* clang-format on */
