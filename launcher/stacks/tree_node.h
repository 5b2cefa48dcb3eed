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
