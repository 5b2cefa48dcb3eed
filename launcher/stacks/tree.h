/* SPDX-License-Identifier: Apache-2.0 */
/* The branches of a stack tree: for tree.c, which builds and prints them.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "stacks/stack.h"

/* A set of ranks that grows. */
struct rank_set {
    int *ranks;
    size_t count, room;
};

void rank_set_add(struct rank_set *set, int rank); /* cheap if a rank comes again at once */

/* A word about the ranks of one leaf, and about which of them. */
struct leaf_word {
    char *word;
    struct rank_set ranks;
};

struct leaf_words {
    struct leaf_word *items;
    size_t count;
};

struct tree_leaf {
    struct rank_set ranks, gil;
    size_t stacks;
    struct leaf_words doings, names; /* what they do; the names of threads */
};

/* A frame below its caller. The roots of a tree have no frame. */
struct tree_node {
    char *function, *file; /* the whole path, as the first rank has it */
    int line;
    bool native;
    char *trouble; /* instead of a frame, at a root's child; NULL */
    struct rank_set ranks;
    struct tree_leaf leaf; /* of the stacks that end here; without ranks: none */
    struct tree_node **children;
    size_t count;
};

struct stack_tree {
    struct tree_node *roots[STACK_ROLES];
    size_t nodes;
    bool native; /* it has frames of compiled code */
};

void tree_node_destroy(struct tree_node *node); /* and all below it */
void tree_sort(struct stack_tree *tree);
/* Appends "loader.py:112 read". */
void tree_node_frame(const struct tree_node *node, struct buf *out);
/* "calls futex", "calls futex (0-2), running (3)". Appends nothing if nothing is known. */
void tree_leaf_doing(const struct tree_leaf *leaf, struct buf *out);
/* "pt_autograd_0, pt_autograd_1". Appends nothing if no thread has a name. */
void tree_leaf_names(const struct tree_leaf *leaf, struct buf *out);

/*
 * The stacks of all ranks, merged: equal outer frames are one branch, with the set of ranks that
 * are there. Pure. What goes in comes from other hosts: it is bounded, and made printable.
 *
 * Frames are equal if function, line and the base name of the file are equal. So ranks are merged
 * even if their hosts have the program in different folders.
 */

#define STACK_TREE_LINES 60
#define STACK_TREE_ALL_LINES 100000

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
