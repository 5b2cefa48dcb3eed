/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of all ranks, merged: equal outer frames are one branch, with the set of ranks that
 * are there. Pure. What goes in comes from other hosts: it is bounded, and made printable.
 *
 * Frames are equal if function, line and the base name of the file are equal. So ranks are merged
 * even if their hosts have the program in different folders.
 */
#pragma once

#include "base/buf.h"
#include "stacks/stack.h"

#define STACK_TREE_LINES 60
#define STACK_TREE_ALL_LINES 100000

/* Appends "train.py:6 read_batch". */
void stack_frame_text(const struct stack_frame *frame, struct buf *out);

struct stack_tree;

struct stack_tree *stack_tree_create(void);
void stack_tree_destroy(struct stack_tree *tree);                        /* accepts NULL */
void stack_tree_add(struct stack_tree *tree, const struct stack *stack); /* copies it */
bool stack_tree_is_empty(const struct stack_tree *tree);

/* Appends at most STACK_TREE_LINES lines and a few: they begin with "hvdrun: " or four spaces. The
 * branches with the fewest ranks come first. Nothing for an empty tree. */
void stack_tree_text(struct stack_tree *tree, struct buf *out);

/* The same, as `style` says. */
struct stack_tree_style {
    const char *prefix; /* of lines without stacks */
    const char *kind;   /* of the stacks, after the prefix: "Python stacks, " */
    int lines;          /* at most; the others are counted */
};
void stack_tree_print(struct stack_tree *tree, const struct stack_tree_style *style,
                      struct buf *out);

/* Where stacks end: all that end at one frame are one leaf. The same order as in the text. */
struct stack_leaf {
    enum stack_role role;
    const struct stack_frame *frames; /* the outermost first */
    size_t count;
    const int *ranks, *gil_ranks; /* ascending; each once */
    size_t rank_count, gil_count;
    size_t stacks;       /* threads; more than ranks if some have several there */
    const char *doing;   /* "calls futex"; "calls futex (0-2), running (3)"; "" */
    const char *names;   /* of threads: "pt_autograd_0, pt_autograd_1"; "" */
    const char *trouble; /* "" */
};

void stack_tree_visit(struct stack_tree *tree,
                      void (*leaf)(void *context, const struct stack_leaf *leaf), void *context);
