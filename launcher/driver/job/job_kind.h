/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of a job: static (start/static_kind.c), elastic (elastic/elastic_kind.c) or a check
 * (features/check). This table holds all differences between the kinds. driver/parts.c
 * chooses the kind.
 */
#pragma once

#include "driver/job/job.h"
#include "model/exit/record.h"

struct control_rule;
struct json_t;

struct job_kind {
    bool many_epochs; /* after a loss it continues in another epoch */
    bool has_workers; /* false: its only result is what it prints */
    int64_t node_timeout_ms;
    const struct frame_rule *frames; /* FRAME_TYPES of them: what only agents of this kind send;
                                        never NULL */

    /* Start and end. `create` comes when all parts exist; -1: the job cannot start. */
    int (*create)(struct job *job, struct error *err);
    void (*begin)(struct job *job);
    void (*advance)(struct job *job);            /* something has changed (job_advance) */
    void (*pause)(struct job *job, bool paused); /* beside those of the parts */
    void (*ending)(struct job *job);             /* the end has begun */
    void (*over)(struct job *job);               /* all agents are gone */
    void (*verdict)(const struct job *job,
                    struct verdict *out); /* at the end; may be called again */
    void (*report)(const struct job *job, struct json_t *root); /* adds its part */
    void (*print)(const struct job *job);                       /* its result, on stdout */

    /* Requests over the control socket, as those of a part (part.h); they come before them. NULL:
     * none. `status` adds to the answer to "status", or replaces parts of it. */
    const struct control_rule *requests;
    void (*status)(const struct job *job, struct json_t *root);

    void (*destroy)(struct job *job); /* also when `create` failed or never ran */

    /* A node comes up, or fails to. */
    void (*welcome)(const struct job *job, Hvdrun__Welcome *welcome); /* adds its part */
    void (*hello)(struct job *job, struct node_link *node);
    /* The job may use the node, which is up and welcome. */
    void (*came)(struct job *job, struct node_link *node);
    void (*unreached)(struct job *job, struct node_link *node, const char *why);
    void (*note)(struct job *job, const struct node_link *node, const char *line);
    /* The agent of a host that no list has wants to come in. NULL: its node is called now; else why
     * not. */
    const char *(*stranger)(struct job *job, const char *name);

    /* A node leaves. */
    void (*lost)(struct job *job, struct node_link *node, const char *why);
    void (*gone)(struct job *job, struct node_link *node);  /* as agreed */
    void (*ended)(struct job *job, struct node_link *node); /* its workers have ended */

    /* Ranks have spawned others: job->plan is about to be this one, which begins with the present
     * one. It lives until the next call. */
    void (*grow)(struct job *job, const struct plan *plan);

    /* A worker. Its record has been written; event->seat is its seat. */
    void (*started)(struct job *job, int seat);
    void (*exited)(struct job *job, const struct exit_event *event);
    void (*finished)(struct job *job, int seat);
    void (*aborted)(struct job *job, const struct exit_event *event, const char *message);
    void (*killed)(struct job *job, const struct node_link *node, int64_t when_ns);
    /* Processes of the job stay on this node for ever. */
    void (*unkilled)(struct job *job, const struct node_link *node, const char *what);
    void (*progressed)(struct job *job, int seat, int64_t when_ns); /* it reported at that time */
    void (*hung)(struct job *job, int seat); /* start again; -1: no worker is to blame */
    enum exit_role (*role)(const struct job *job, int seat); /* in the verdict */
};

/* Calls a function of the kind, if it has it, with the job and the other arguments:
 * KIND_TELL(job, lost, node, why). */
#define KIND_TELL(job, function, ...)                    \
    do {                                                 \
        if ((job)->kind->function != NULL)               \
            (job)->kind->function((job), ##__VA_ARGS__); \
    } while (0)

/* The kind has taken HELLO: a part may delay the node. Then the part calls kind_came(). */
void kind_welcomed(struct job *job, struct node_link *node);
void kind_came(struct job *job, struct node_link *node);
enum exit_role kind_role(const struct job *job, int seat);

/* The kind of job that a request means. In driver/parts.c, which knows all of them. */
const struct job_kind *driver_kind(const struct job_request *request);
