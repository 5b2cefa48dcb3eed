/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at what all ranks do: the driver asks every agent about their states and stacks. Every
 * caller that asks meanwhile gets the same look. A look that includes native frames takes longer
 * and disturbs the ranks, so it is a look of its own.
 */
#pragma once

#include "driver/job/ask.h"
#include "driver/job/job.h"
#include "stacks/stack.h"
#include "stacks/tree.h"

#define LOOK_WAIT_MS 2000
#define LOOK_NATIVE_WAIT_MS 8000

/* `done` gets the answers, which are what the functions below call a look. ask_forget() works. */
void look_ask(struct job *job, enum look_depth depth, ask_done *done, void *context);

struct look_ranks { /* the wanted ones; NULL: all */
    const bool *wanted;
    int count;
};

/* The stacks, as a new tree. With `bare`, also processes that do not run Python. */
struct stack_tree *look_tree(const struct ask *look, bool bare, const struct look_ranks *ranks);

/* Calls `each` for every stack; what it gets is borrowed. */
void look_walk(const struct ask *look,
               void (*each)(void *context, int seat, const struct stack *stack), void *context);

/* Calls `each` for every seat of which look_walk() shows all threads of all processes, with all
 * their native frames. None of its processes runs Python. */
void look_walk_whole(const struct ask *look, void (*each)(void *context, int seat), void *context);

/* A number for the frames of a stack, without those below Python; 0: it has none, or they could not
 * be read. */
uint64_t look_place(const struct stack *stack);

/* Why hosts could not read native frames, one line for each cause: "c17: cannot load ..."; empty:
 * they could. */
void look_remarks(const struct ask *look, struct buf *out);

/* States and stacks of all ranks, other programs than Python included, as lines. */
void look_text(const struct ask *look, struct buf *out);

/* Shows states and stacks of all ranks, and keeps the stacks for the report. */
void look_show(const struct ask *look);

/* The stacks of a tree as a list, for reports and for `hvdrun stacks --json`; a value of jansson
 * that the caller owns. */
struct json_t *stacks_json(struct stack_tree *tree);
