/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a job. A part has one task (output, stdin, the user's signals, hangs), its own data
 * (job_part), and a line in part_list.def. What it wants to hear of is in its constant `struct
 * driver_part`, called NAME_part; driver/parts.c makes the table of all of them.
 */
#pragma once

#include "driver/job/job.h"

struct ask;
struct control_rule;
struct json_t;
struct stall;

struct part_frame { /* that a part takes in every kind of job */
    enum frame_type type;
    struct frame_rule rule;
};

enum host_bad {
    HOST_BAD_LOST,     /* too often */
    HOST_BAD_UNKILLED, /* SIGKILL does not end a process there */
    HOST_BAD_CHECKED   /* `hvdrun check` has found it */
};

enum incident_kind { INCIDENT_FAILURE, INCIDENT_HANG, INCIDENT_TIMEOUT, INCIDENT_KINDS };

/* Something has gone wrong, and the ranks that still run will be ended. A part may look at them
 * first. */
struct incident {
    enum incident_kind kind;
    const char *text;       /* what has gone wrong */
    int rank;               /* -1: none */
    bool once;              /* one look is enough: the ranks are ended meanwhile, or have ended */
    bool by_nccl;           /* NCCL has named the rank */
    const struct ask *look; /* at the ranks, that was just taken; NULL */
};

struct driver_part { /* any function may be NULL */
    const char *name;

    /* Of the data in job->own[PART_name]: zeroed before `open`, freed after `close`. 0: `open` sets
     * it, or leaves it NULL, since this job does not need the part, and `close` frees it. */
    size_t size;
    int (*open)(struct job *job, struct error *err); /* -1: the job cannot start */
    /* In the reverse order, and only if the part has data; also if `open` has failed. */
    void (*close)(struct job *job);

    const struct part_frame *frames; /* ends with one whose type is 0 */

    /* Over the control socket (control/request.h): the context of the rules is the struct job. The
     * kind of job, and parts above, may answer the same request first. */
    const struct control_rule *requests;

    /* What the part adds to PREPARE, and to objects about the whole job. */
    void (*prepare)(const struct job *job, Hvdrun__Prepare *message);
    /* READY of a node, START, and what was chosen for the workers before they all start anew. */
    void (*ready)(struct job *job, const struct node_link *node, const Hvdrun__Ready *message);
    void (*start)(const struct job *job, Hvdrun__Start *message); /* it borrows what is added */
    void (*forget)(struct job *job);
    void (*status)(const struct job *job, struct json_t *root); /* the answer to "status" */
    void (*report)(const struct job *job, struct json_t *root); /* --report */
    void (*record)(const struct job *job, struct json_t *end);  /* the record of its end */

    /* What a worker on a seat does: it has printed something; libhvd says what it waits for, as the
     * answer to question `round` (takes what `stall` owns, or returns false). */
    void (*output)(struct job *job, int seat, bool is_stderr, const void *bytes, size_t length);
    bool (*waits)(struct job *job, struct stall *stall, uint32_t round);
    void (*ranks_changed)(struct job *job); /* workers have started, or one has exited */
    void (*steps_begin)(struct job *job);   /* MPI ranks exchange data, for the first time */

    /* A node: "node_suspect", "node_heard" or "node_lost", with a text for the user or NULL. */
    void (*node_event)(struct job *job, struct node_link *node, const char *event,
                       const char *text);
    void (*node_lost)(struct job *job, struct node_link *node); /* before the kind of job decides */
    void (*node_closed)(struct job *job, struct node_link *node); /* lost, or as agreed */

    /* A host is bad for other jobs, too. `why` is for people: "it was lost 3 times". */
    void (*host_bad)(struct job *job, const struct node_link *node, enum host_bad kind,
                     const char *why);
    bool (*leaves_out)(struct job *job, const char *host); /* of a list that was discovered */

    /* A node has come up. true: the job must not use it yet; the part calls kind_came() later. With
     * NULL instead of a node: is there one that the part delays? */
    bool (*delays)(struct job *job, struct node_link *node);

    /* All workers are about to start again, in this epoch. true: not yet; the part calls
     * job_advance() when it is time. */
    bool (*holds)(struct job *job, uint32_t epoch);

    /* The job stands still, or goes on: so do the limits of its times. */
    void (*pause)(struct job *job, bool paused);

    /* The end. `busy`: something of the part must end before the job can. */
    void (*user_ends)(struct job *job, int signal); /* a signal turns out to be the user's */
    void (*ending)(struct job *job);                /* it has begun, once */
    void (*incident)(struct job *job, const struct incident *incident); /* all parts hear of it */
    /* Then one takes it, and calls `done` when it is done with the ranks; or none does. */
    bool (*takes_incident)(struct job *job, const struct incident *incident,
                           void (*done)(void *context), void *context);
    bool (*busy)(struct job *job);
    void (*over)(struct job *job); /* all agents are gone; there is no verdict yet */
    void (*tell)(struct job *job); /* last words about the verdict; again if it was replaced */
    void (*told)(struct job *job); /* everything is written, and the loop runs no more */
};

#define PART(name) extern const struct driver_part name##_part;
#define FEATURE(name) extern const struct driver_part name##_part __attribute__((weak));
#include "driver/job/part_list.def"

/* All of them, for job->parts. In driver/parts.c. */
extern const struct driver_part *const driver_parts[PART_COUNT];

/* The next part from number `*at` on, which becomes the one behind it. NULL: there is none. A
 * part whose feature was left out is skipped. */
const struct driver_part *parts_next(const struct job *job, int *at);

void parts_note_frames(struct job *job); /* fills job->frames */
int parts_open(struct job *job, struct error *err);
void parts_close(struct job *job); /* also when some are not open */
/* One of them. */
int part_open(struct job *job, enum part_id id, const struct driver_part *part, struct error *err);
void part_close(struct job *job, enum part_id id, const struct driver_part *part);

/* The hot path of PARTS_TELL(job, output, ...). */
void parts_output(struct job *job, int seat, bool is_stderr, const void *bytes, size_t length);

#define EACH_PART(job, each)                                      \
    int next_part = 0;                                            \
    const struct driver_part *each = parts_next(job, &next_part); \
    for (; each != NULL; each = parts_next(job, &next_part))

/* Calls a function of all parts that have it, in the order of the list, with the job and the other
 * arguments: PARTS_TELL(job, node_lost, node). */
#define PARTS_TELL(job, function, ...)                   \
    do {                                                 \
        EACH_PART (job, told_part) {                     \
            if (told_part->function != NULL)             \
                told_part->function(job, ##__VA_ARGS__); \
        }                                                \
    } while (0)

/* The same up to the first part whose function is true: PARTS_ANY(job, busy). false: none is. */
#define PARTS_ANY(job, function, ...)                                                            \
    ({                                                                                           \
        bool any_part = false;                                                                   \
        EACH_PART (job, asked_part) {                                                            \
            any_part = asked_part->function != NULL && asked_part->function(job, ##__VA_ARGS__); \
            if (any_part)                                                                        \
                break;                                                                           \
        }                                                                                        \
        any_part;                                                                                \
    })

/* false: no part takes it. Else `done`, if it is not NULL, is called when the ranks are not needed
 * any more: at once, or from the loop, when the job may have ended. */
bool incident_raise(struct job *job, const struct incident *incident, void (*done)(void *context),
                    void *context);

/* "rank 3 on b exited with code 1". The caller frees it. */
char *incident_exit_text(const struct job *job, const struct exit_event *event);
