/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper processes of an agent that read stacks (features/stacks/stack_helper_agent.h), while
 * the agent goes on. They start with the first look, and end when nobody has looked for a while.
 *
 * A look is a list of processes. Each helper has a few of them at a time, and answers in order. If
 * no answer comes for a moment, what the silent helpers have not begun goes to another one. If a
 * helper dies, the process that it was reading gets a second try without native frames, or a word
 * about it. At the deadline, the helpers that still read are killed and left behind. Their
 * processes come last in the next looks, so that they do not take the time of the others. The
 * kernel may hold such a helper, and no other one follows it to its process while that is so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/helpers.h"
#include "io/loop.h"
#include "stacks/stack.h"
#include "wire/control.pb-c.h"

#define STACK_POOL_HELPERS 8
#define STACK_POOL_HELD 32 /* left behind: more are not started */

struct stack_item {
    pid_t pid;                   /* the caller's */
    Hvdrun__StackAnswer *answer; /* NULL: none, and `why` says why */
    char *why;                   /* NULL: it was not read in time */
    char *remark;                /* NULL, or why native frames are missing */
    /* the pool's own: */
    bool given, plain, done, last;
};

struct stack_pool;
struct stack_look;

/* `program`: a path of hvdrun-agent. All are borrowed. */
struct stack_pool *stack_pool_create(struct loop *loop, struct helpers *helpers,
                                     const char *program);
/* All looks are destroyed before. Accepts NULL. */
void stack_pool_destroy(struct stack_pool *pool);

/* Fills in the items, which are the caller's, those that come first at first. `done` comes once,
 * from the loop, at the deadline at the latest, and may destroy the look. */
struct stack_look *stack_pool_look(struct stack_pool *pool, struct stack_item *items, size_t count,
                                   enum look_depth depth, int64_t limit_ms,
                                   void (*done)(void *context), void *context);
void stack_look_destroy(struct stack_look *look); /* not the items; accepts NULL */

void stack_item_clear(struct stack_item *item);
