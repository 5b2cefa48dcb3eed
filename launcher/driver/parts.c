/* SPDX-License-Identifier: Apache-2.0 */
/* The composing page of the driver: all parts of a job (job/part.h) and all kinds of job. */
#include "driver/elastic/parts.h"
#include "driver/job/part.h"
#include "driver/start/start.h"
#include "driver/tell/line_log.h"
#include "driver/tell/recent.h"
#include "driver/tell/stalls.h"
#include "io/helpers.h"
#include "output/terminal.h"

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

/* Raw, if a rank has a terminal of its own and reads what is typed. */
static struct terminal *terminal_of(const struct job *job)
{
    bool reads = job->settings->pty >= 0 && job_stdin_rank(job) == job->settings->pty;
    return reads ? terminal_raw() : NULL;
}

CONTAINER(helpers, helpers_create(), helpers_destroy)
CONTAINER(recent, recent_create(RECENT_BYTES), recent_destroy)
CONTAINER(terminal, terminal_of(job), terminal_destroy)
CONTAINER(stall_list, stall_list_create(), stall_list_destroy)

/* The same, but another part creates it. */
#define CONTAINER_OF_OTHERS(id, destroy)    \
    static void close_##id(struct job *job) \
    {                                       \
        destroy(job->own[PART_##id]);       \
    }                                       \
    const struct driver_part id##_part = {.name = #id, .close = close_##id};

CONTAINER_OF_OTHERS(line_log, line_log_destroy)     /* of job_control */
CONTAINER_OF_OTHERS(rank_tails, rank_tails_destroy) /* rank_tails_want() */
