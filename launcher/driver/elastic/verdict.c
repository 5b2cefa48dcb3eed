/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/verdict.h"

#include <signal.h>

#include "base/status.h"

static int status_of(const struct elastic_verdict *verdict)
{
    if (verdict->code > 0)
        return verdict->signaled ? 128 + verdict->code : verdict->code & 0xff;
    switch (verdict->end) {
    case ELASTIC_END_SUCCESS: return 0;
    case ELASTIC_END_HOST_LOST: return STATUS_NODE_LOST;
    case ELASTIC_END_NO_HOSTS: return STATUS_NO_SLOTS;
    case ELASTIC_END_RESET_LIMIT: return verdict->host < 0 ? STATUS_LAUNCHER : STATUS_NODE_LOST;
    default: return STATUS_LAUNCHER;
    }
}

static enum exit_cause cause_of(const struct elastic_verdict *verdict)
{
    switch (verdict->end) {
    case ELASTIC_END_SUCCESS: return CAUSE_NONE;
    case ELASTIC_END_CRASH:
    case ELASTIC_END_FAULT: return verdict->signaled ? CAUSE_SIGNAL : CAUSE_EXIT;
    case ELASTIC_END_HOST_LOST: return CAUSE_NODE_LOST;
    default: return CAUSE_LAUNCHER;
    }
}

/* The core knows only that the driver ended the job. */
static void blame_driver(const struct job *job, struct verdict *out)
{
    if (job->gone)
        exit_outside_blame_signal(SIGPIPE, out);
    else if (job->outside.interrupted.signal > 0)
        exit_outside_blame_interruption(&job->outside, out);
    else
        verdict_set(out, STATUS_LAUNCHER, CAUSE_LAUNCHER,
                    "the launcher ended the job without a recorded reason");
}

void elastic_verdict_of(const struct job *job, const struct elastic *core, struct verdict *out)
{
    const struct elastic_verdict *verdict = elastic_verdict(core);
    if (job->outside.launcher.status != 0) {
        exit_outside_blame_launcher(&job->outside, out);
    } else if (verdict->end == ELASTIC_END_DRIVER || verdict->end == ELASTIC_END_NONE) {
        blame_driver(job, out);
    } else {
        verdict_set(out, status_of(verdict), cause_of(verdict), verdict->text);
        out->seat = verdict->seat;
        out->node = verdict->host;
    }
}

/* The user's signal reached the workers too. */
static bool is_after_interruption(const struct job *job, const struct rank_record *record)
{
    const struct exit_outside *outside = &job->outside;
    int64_t since = outside->interrupted.when_ns - outside->interrupted.round_ns;
    return outside->interrupted.signal != 0 && record->ended_ns > since;
}

enum exit_role elastic_role_of(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    if (record->state < RANK_EXITED)
        return ROLE_NONE;
    if (!record->signaled && record->code == 0)
        return ROLE_OK;
    if (seat == job->verdict.seat)
        return ROLE_CAUSE;
    bool by_us = record->ended_by_us || is_after_interruption(job, record);
    return by_us && !record->aborted ? ROLE_CONSEQUENCE : ROLE_FAILED;
}
