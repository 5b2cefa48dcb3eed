/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/parts.h"

#include "driver/elastic/elastic_kind.h"
#include "driver/run/evidence_folder.h"
#include "driver/run/hang_waits.h"
#include "driver/start/static_kind.h"
#include "driver/tell/line_log.h"
#include "driver/tell/rank_tails.h"
#include "driver/tell/stalls.h"
#include "io/helpers.h"
#include "output/terminal.h"
#include "stacks/tree.h"

const struct driver_part *const driver_parts[PART_COUNT] = {
#define PART(name) [PART_##name] = &name##_part,
#define FEATURE(name) PART(name)
#include "driver/job/part_list.def"
};

extern const struct job_kind check_kind __attribute__((weak)); /* launcher/features/check */

const struct job_kind *driver_kind(const struct job_request *request)
{
    if (request->check != NULL)
        return &check_kind;
    return request->plan == NULL ? &elastic_kind : &static_kind;
}

/* Parts that are a container of a lower room, which knows no job. */
#define CONTAINER(id, create, destroy)                       \
    static int open_##id(struct job *job, struct error *err) \
    {                                                        \
        (void)err;                                           \
        job->own[PART_##id] = create;                        \
        return 0;                                            \
    }                                                        \
    static void close_##id(struct job *job)                  \
    {                                                        \
        destroy(job->own[PART_##id]);                        \
    }                                                        \
    const struct driver_part id##_part = {.name = #id, .open = open_##id, .close = close_##id};

/* The status page and evidence show the last output of each rank. */
static struct rank_tails *tails_of(const struct job *job)
{
    const struct settings *settings = job->settings;
    bool wanted = settings->metrics != NULL || settings->page_file != NULL ||
                  evidence_folder_may_come(settings);
    if (!job->kind->has_workers || !wanted)
        return NULL;
    return rank_tails_create(job->plan->size > 0 ? job->plan->size : (int)settings->max_np);
}

/* Raw, if a rank has a terminal of its own and reads what is typed. */
static struct terminal *terminal_of(const struct job *job)
{
    bool reads = job->settings->pty >= 0 && job_stdin_rank(job) == job->settings->pty;
    return reads ? terminal_raw() : NULL;
}

CONTAINER(helpers, helpers_create(), helpers_destroy)
CONTAINER(recent, recent_create(RECENT_BYTES), recent_destroy)
CONTAINER(rank_tails, tails_of(job), rank_tails_destroy)
CONTAINER(terminal, terminal_of(job), terminal_destroy)
CONTAINER(line_log, NULL, line_log_destroy)     /* of job_control */
CONTAINER(stack_tree, NULL, stack_tree_destroy) /* of driver/run/look.c */
CONTAINER(stall_list, stall_list_create(), stall_list_destroy)
CONTAINER(hang_waits, hang_waits_create(), hang_waits_destroy)
