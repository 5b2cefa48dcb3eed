/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at what all ranks do: the driver asks every agent (STATE_REQUEST), and waits at most
 * LOOK_WAIT_MS for the answers. Every caller that asks meanwhile gets the same look. A look that
 * includes native frames takes longer and disturbs the ranks, so it is a look of its own.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"
#include "model/hang/stack.h"

#define LOOK_WAIT_MS 2000
#define LOOK_NATIVE_WAIT_MS 8000

struct looks;
struct look; /* the answers */

struct looks *looks_create(struct job *job, bool native); /* native frames too */
void looks_destroy(struct looks *looks);                  /* and job->stacks; accepts NULL */

/* `done` comes once, from the loop; not if the looks are destroyed, or the look is forgotten. The
 * look is borrowed until `done` returns. */
void looks_ask(struct looks *looks, void (*done)(void *context, const struct look *look),
               void *context);
void looks_forget(struct looks *looks, const void *context); /* of looks_ask() */

struct look_ranks { /* the wanted ones; NULL: all */
    const bool *wanted;
    int count;
};

/* The stacks, as a new tree. With `bare`, also processes that do not run Python. */
struct stack_tree *look_tree(const struct look *look, bool bare, const struct look_ranks *ranks);

struct look_stack {
    const struct stack *stack;
    bool bare; /* a process that does not run Python */
};

/* Calls `each` for every stack; what it gets is borrowed. */
void look_walk(const struct look *look,
               void (*each)(void *context, int seat, const struct look_stack *stack),
               void *context);

/* A number for the frames of a stack; 0: it has none, or they could not be read. */
uint64_t look_place(const struct stack *stack);

/* The hosts whose agents did not answer in time, as "c17, c18"; empty: none. */
void look_missing(const struct look *look, struct buf *out);

/* Why hosts could not read native frames, one line for each cause: "c17: cannot load ..."; empty:
 * they could. */
void look_remarks(const struct look *look, struct buf *out);

/* States and stacks of all ranks, other programs than Python included, as lines. */
void look_text(const struct look *look, struct buf *out);

/* Shows states and stacks of all ranks, and keeps the stacks for the report. */
void look_show(const struct look *look);

/* STATE_REPORT: what the workers of a node are doing. */
int looks_report(struct job *job, struct node_link *node, const struct agent_frame *frame);
