/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "features/evidence/error_text.h"

struct view view_of(const struct explain_facts *facts, const struct explain_rank *rank)
{
    struct view v = {.facts = facts, .rank = rank};
    for (size_t i = 0; rank != NULL && i < facts->host_count && v.host == NULL; i++)
        v.host = strcmp(facts->hosts[i].host, rank->host) == 0 ? &facts->hosts[i] : NULL;
    return v;
}

/* ---- the job ---- */

static bool is_kind(const struct view *v, const char *kind)
{
    return v->facts->kind != NULL && strcmp(v->facts->kind, kind) == 0;
}

static bool is_about(const struct view *v, const char *words)
{
    return v->facts->what != NULL && strstr(v->facts->what, words) != NULL;
}

static bool ended_with(const struct view *v, int status)
{
    return v->facts->ended && v->facts->status == status;
}

bool fact_always(const struct view *v)
{
    return v != NULL;
}

bool fact_has_folder(const struct view *v)
{
    return v->facts->has_folder;
}

bool fact_differ(const struct view *v)
{
    return v->facts->differ.count > 0;
}

bool fact_nccl_answered(const struct view *v)
{
    return v->facts->nccl != NULL && v->facts->nccl[0] != '\0';
}

bool fact_has_flights(const struct view *v)
{
    return v->facts->flights > 0;
}

bool fact_nccl_and_flights(const struct view *v)
{
    return fact_nccl_answered(v) && fact_has_flights(v);
}

bool fact_gone(const struct view *v)
{
    return v->facts->gone;
}

bool fact_success(const struct view *v)
{
    return ended_with(v, 0);
}

bool fact_stopped(const struct view *v)
{
    return v->facts->cause != NULL && strcmp(v->facts->cause, "stopped") == 0;
}

bool fact_interrupted(const struct view *v)
{
    return v->facts->cause != NULL && strcmp(v->facts->cause, "interrupted") == 0;
}

bool fact_hung_up(const struct view *v)
{
    return fact_interrupted(v) && ended_with(v, 128 + SIGHUP);
}

bool fact_reader_gone(const struct view *v)
{
    return fact_interrupted(v) && ended_with(v, 128 + SIGPIPE);
}

bool fact_ctrl_c(const struct view *v)
{
    return fact_interrupted(v) && ended_with(v, 128 + SIGINT);
}

bool fact_timeout(const struct view *v)
{
    return is_kind(v, "timeout") || ended_with(v, STATUS_TIMEOUT);
}

bool fact_hang_of_nobody(const struct view *v)
{
    return is_kind(v, "hang");
}

bool fact_hang_of_rank(const struct view *v)
{
    return fact_hang_of_nobody(v) && v->rank != NULL;
}

bool fact_hang_of_stopped(const struct view *v)
{
    return fact_hang_of_rank(v) && is_about(v, "stopped (SIG");
}

bool fact_hang_of_frozen(const struct view *v)
{
    return fact_hang_of_rank(v) && is_about(v, "frozen by");
}

bool fact_hang_of_starved(const struct view *v)
{
    return fact_hang_of_rank(v) && is_about(v, "out of memory in its cgroup");
}

bool fact_hang_of_left(const struct view *v)
{
    return fact_hang_of_rank(v) && is_about(v, "without MPI_Finalize");
}

bool fact_hang_without_folder(const struct view *v)
{
    return ended_with(v, STATUS_HANG);
}

/* ---- hosts ---- */

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

const struct explain_host *view_full_host(const struct view *v)
{
    for (size_t i = 0; i < v->facts->host_count; i++) {
        char *folder AUTO_FREE = host_signs_full_folder(&v->facts->hosts[i]);
        if (folder != NULL)
            return &v->facts->hosts[i];
    }
    return NULL;
}

bool fact_host_was_lost(const struct view *v)
{
    return view_lost_host(v) != NULL;
}

bool fact_agent_was_killed(const struct view *v)
{
    return fact_host_was_lost(v) && (is_about(v, "killed by SIG") || is_about(v, "(SIGKILL)"));
}

bool fact_gpu_is_sick(const struct view *v)
{
    return view_gpu_host(v, GPU_FAULT_GPU) != NULL;
}

bool fact_gpu_was_misused(const struct view *v)
{
    return view_gpu_host(v, GPU_FAULT_PROGRAM) != NULL;
}

bool fact_full_host(const struct view *v)
{
    return view_full_host(v) != NULL;
}

bool fact_full_folder(const struct view *v)
{
    char *folder AUTO_FREE = v->host == NULL ? NULL : host_signs_full_folder(v->host);
    return folder != NULL;
}

/* ---- the rank ---- */

/* In a hang and at a time limit, what ranks wrote is old. */
static bool is_culprit(const struct view *v)
{
    return v->rank != NULL && !fact_hang_of_nobody(v) && !fact_timeout(v) &&
           !ended_with(v, STATUS_HANG);
}

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
           signal == SIGABRT;
}

bool fact_ended(const struct view *v)
{
    return is_culprit(v) && v->rank->ended && !v->rank->consequence;
}

bool fact_killed(const struct view *v)
{
    return fact_ended(v) && v->rank->signaled;
}

/* An error that it has written may be the reason. A signal from outside needs none, and after a
 * crash, only text that is an error counts. */
bool fact_failed(const struct view *v)
{
    if (!is_culprit(v))
        return false;
    return !fact_killed(v) || (is_crash(v->rank->code) && v->error->found);
}

bool fact_signal_by_request(const struct view *v)
{
    return fact_killed(v) && v->rank->request != NULL;
}

static bool memory_ran_out(const struct view *v)
{
    return v->rank->oom || (v->host != NULL && host_signs_memory_kills(v->host) > 0);
}

bool fact_out_of_memory(const struct view *v)
{
    bool by_kernel = v->rank != NULL && v->rank->ended && v->rank->signaled &&
                     v->rank->code == SIGKILL && !v->rank->consequence;
    return v->rank != NULL && (v->rank->oom || (by_kernel && memory_ran_out(v)));
}

bool fact_memory_of_child(const struct view *v)
{
    return fact_failed(v) && memory_ran_out(v);
}

static bool has_code(const struct view *v)
{
    return fact_ended(v) && !v->rank->signaled;
}

bool fact_left_early(const struct view *v)
{
    return has_code(v) && v->rank->code == 0;
}

bool fact_silent(const struct view *v)
{
    return has_code(v) && v->rank->silent && v->error->count == 0;
}

bool fact_raised(const struct view *v)
{
    char *place AUTO_FREE = fact_failed(v) ? error_text_place(v->error) : NULL;
    return place != NULL;
}

bool fact_wrote(const struct view *v)
{
    return fact_failed(v) && v->error->count > 0;
}

bool fact_not_run(const struct view *v)
{
    return ended_with(v, STATUS_NOT_FOUND) || ended_with(v, STATUS_NOT_EXECUTABLE);
}

static bool has_crashed(const struct view *v)
{
    return fact_killed(v) && is_crash(v->rank->code);
}

bool fact_core_is_there(const struct view *v)
{
    return has_crashed(v) && v->rank->core;
}

static bool says_of_cores(const struct view *v, const char *words)
{
    return has_crashed(v) && v->host != NULL && v->host->cores != NULL &&
           strstr(v->host->cores, words) != NULL;
}

bool fact_core_is_off(const struct view *v)
{
    return says_of_cores(v, "the soft limit is 0");
}

bool fact_core_is_piped(const struct view *v)
{
    return says_of_cores(v, "core_pattern: |");
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

bool fact_behind(const struct view *v)
{
    int64_t first, last;
    view_collectives(v, &first, &last);
    return fact_failed(v) && first < last;
}
