/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/job_kind.h"

#include "driver/job/part.h"

/* Calls a function of the kind, if it has it. */
#define TELL(function, ...)          \
    if (job->kind->function != NULL) \
        job->kind->function(__VA_ARGS__);

int kind_create(struct job *job, struct error *err)
{
    return job->kind->create == NULL ? 0 : job->kind->create(job, err);
}

void kind_begin(struct job *job)
{
    TELL(begin, job)
}

void kind_advance(struct job *job)
{
    TELL(advance, job)
}

void kind_pause(struct job *job, bool paused)
{
    TELL(pause, job, paused)
}

void kind_ending(struct job *job)
{
    TELL(ending, job)
}

void kind_over(struct job *job)
{
    TELL(over, job)
}

void kind_verdict(const struct job *job, struct verdict *out)
{
    TELL(verdict, job, out)
}

void kind_report(const struct job *job, struct json_t *root)
{
    TELL(report, job, root)
}

void kind_print(const struct job *job)
{
    TELL(print, job)
}

void kind_status(const struct job *job, struct json_t *root)
{
    TELL(status, job, root)
}

static void close_kind(struct job *job)
{
    TELL(destroy, job)
    job->kind_data = NULL;
}

void kind_welcome(const struct job *job, Hvdrun__Welcome *welcome)
{
    TELL(welcome, job, welcome)
}

void kind_hello(struct job *job, struct node_link *node)
{
    TELL(hello, job, node)
}

void kind_came(struct job *job, struct node_link *node)
{
    if (job->kind->came != NULL && node->state == NODE_UP)
        job->kind->came(job, node);
}

void kind_welcomed(struct job *job, struct node_link *node)
{
    if (!parts_delay(job, node))
        kind_came(job, node);
}

void kind_unreached(struct job *job, struct node_link *node, const char *why)
{
    TELL(unreached, job, node, why)
}

void kind_note(struct job *job, const struct node_link *node, const char *line)
{
    TELL(note, job, node, line)
}

const char *kind_stranger(struct job *job, const char *name)
{
    return job->kind->stranger != NULL ? job->kind->stranger(job, name)
                                       : "hvdrun does not expect an agent of this name";
}

void kind_lost(struct job *job, struct node_link *node, const char *why)
{
    TELL(lost, job, node, why)
}

void kind_gone(struct job *job, struct node_link *node)
{
    TELL(gone, job, node)
}

void kind_ended(struct job *job, struct node_link *node)
{
    TELL(ended, job, node)
}

void kind_started(struct job *job, int seat)
{
    TELL(started, job, seat)
}

void kind_exited(struct job *job, const struct exit_event *event)
{
    TELL(exited, job, event)
}

void kind_finished(struct job *job, int seat)
{
    TELL(finished, job, seat)
}

void kind_aborted(struct job *job, const struct exit_event *event, const char *message)
{
    TELL(aborted, job, event, message)
}

void kind_killed(struct job *job, const struct node_link *node, int64_t when_ns)
{
    TELL(killed, job, node, when_ns)
}

void kind_unkilled(struct job *job, const struct node_link *node, const char *what)
{
    TELL(unkilled, job, node, what)
}

void kind_progressed(struct job *job, int seat, int64_t when_ns)
{
    TELL(progressed, job, seat, when_ns)
}

void kind_hung(struct job *job, int seat)
{
    TELL(hung, job, seat)
}

enum exit_role kind_role(const struct job *job, int seat)
{
    return job->kind->role == NULL ? ROLE_NONE : job->kind->role(job, seat);
}

/* The kind is created when all parts are open; it is closed as a part, at its place. */
static int open_kind(struct job *job, struct error *err)
{
    (void)err;
    job->own[PART_kind] = job;
    return 0;
}

const struct driver_part kind_part = {.name = "kind", .open = open_kind, .close = close_kind};
