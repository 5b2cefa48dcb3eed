/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/odd_branch.h"

#include <stdlib.h>

#include "model/plan/rank_ranges.h"
#include "stacks/tree_node.h"

/* The end of the chain that begins there: where its ranks part, or end. */
static const struct tree_node *chain_end(const struct tree_node *node)
{
    while (node->count == 1 && node->leaf.ranks.count == 0)
        node = node->children[0];
    return node;
}

static const struct tree_node *largest_child(const struct tree_node *node)
{
    const struct tree_node *found = NULL;
    for (size_t i = 0; i < node->count; i++) {
        if (found == NULL || node->children[i]->ranks.count > found->ranks.count)
            found = node->children[i];
    }
    return found;
}

static int by_number(const void *a, const void *b)
{
    const int *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

/* The sets of a sorted tree are sorted. */
static bool is_in(const struct rank_set *set, int rank)
{
    return set->count > 0 &&
           bsearch(&rank, set->ranks, set->count, sizeof(*set->ranks), by_number) != NULL;
}

/* Where the first of some ranks is: at the end of its branch. */
static const struct tree_node *place_of(const struct tree_node *parting, int rank)
{
    const struct tree_node *node = parting;
    for (size_t i = 0; i < node->count;) {
        bool there = is_in(&node->children[i]->ranks, rank);
        node = there ? node->children[i] : node;
        i = there ? 0 : i + 1;
    }
    return node;
}

static void put_place(const struct tree_node *node, struct buf *out)
{
    buf_puts(out, "in ");
    tree_node_frame(node, out);
}

void odd_branch_text(struct stack_tree *tree, struct buf *out)
{
    tree_sort(tree);
    const struct tree_node *root = tree->roots[STACK_MAIN], *parting = chain_end(root);
    const struct tree_node *most = largest_child(parting);
    struct rank_set odd = {.ranks = NULL};
    size_t all = root->ranks.count;
    for (size_t i = 0; most != NULL && i < all; i++) {
        if (!is_in(&most->ranks, root->ranks.ranks[i]))
            rank_set_add(&odd, root->ranks.ranks[i]);
    }
    bool few = all > 2 && odd.count > 0 && (odd.count == 1 || odd.count <= all / 4);
    const struct tree_node *place = few ? place_of(parting, odd.ranks[0]) : NULL;
    /* a stack that could not be read is no place */
    if (few && most->trouble == NULL && place->trouble == NULL && place != root) {
        rank_set_sort(&odd);
        rank_ranges(odd.ranks, (int)odd.count, out);
        buf_puts(out, odd.count == 1 ? " is elsewhere: " : " are elsewhere: ");
        if (odd.count > 1)
            buf_printf(out, "rank %d is ", odd.ranks[0]);
        put_place(place, out);
        buf_printf(out, "; %zu others are ", most->ranks.count);
        put_place(chain_end(most), out);
    }
    rank_set_destroy(&odd);
}
