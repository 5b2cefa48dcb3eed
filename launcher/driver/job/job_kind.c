/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/job_kind.h"

#include "driver/job/part.h"

void kind_came(struct job *job, struct node_link *node)
{
    if (node->state == NODE_UP)
        KIND_TELL(job, came, node);
}

void kind_welcomed(struct job *job, struct node_link *node)
{
    if (!PARTS_ANY(job, delays, node))
        kind_came(job, node);
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

static void close_kind(struct job *job)
{
    KIND_TELL(job, destroy);
    job->kind_data = NULL;
}

const struct driver_part kind_part = {.name = "kind", .open = open_kind, .close = close_kind};
