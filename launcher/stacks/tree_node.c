/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/tree_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/plan/rank_list.h"

/* ---- Sets of ranks --------------------------------------------------------------------------- */

void rank_set_add(struct rank_set *set, int rank)
{
    if (set->count > 0 && set->ranks[set->count - 1] == rank)
        return;
    if (set->count == set->room) {
        set->room = set->room > 0 ? 2 * set->room : 4;
        set->ranks = mem_resize_array(set->ranks, set->room, sizeof(*set->ranks));
    }
    set->ranks[set->count++] = rank;
}

static int by_number(const void *a, const void *b)
{
    const int *first = a, *second = b;
    return *first < *second ? -1 : *first > *second;
}

static void rank_set_sort(struct rank_set *set)
{
    size_t kept = 0;
    if (set->count > 0)
        qsort(set->ranks, set->count, sizeof(*set->ranks), by_number);
    for (size_t i = 0; i < set->count; i++) {
        if (kept == 0 || set->ranks[kept - 1] != set->ranks[i])
            set->ranks[kept++] = set->ranks[i];
    }
    set->count = kept;
}

static void rank_set_destroy(struct rank_set *set)
{
    free(set->ranks);
    *set = (struct rank_set){.ranks = NULL};
}

/* Fewer ranks come first, then the lower ones. Both are sorted. */
static int rank_set_compare(const struct rank_set *a, const struct rank_set *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = 0; i < a->count; i++) {
        if (a->ranks[i] != b->ranks[i])
            return a->ranks[i] < b->ranks[i] ? -1 : 1;
    }
    return 0;
}

/* ---- Branches -------------------------------------------------------------------------------- */

#define WORDS_SHOWN 3

static void destroy_words(struct leaf_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->items[i].word);
        rank_set_destroy(&words->items[i].ranks);
    }
    free(words->items);
}

void tree_node_destroy(struct tree_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        tree_node_destroy(node->children[i]);
    destroy_words(&node->leaf.doings);
    destroy_words(&node->leaf.names);
    rank_set_destroy(&node->ranks);
    rank_set_destroy(&node->leaf.ranks);
    rank_set_destroy(&node->leaf.gil);
    free(node->children);
    free(node->function);
    free(node->file);
    free(node->trouble);
    free(node);
}

void tree_node_frame(const struct tree_node *node, struct buf *out)
{
    if (node->file[0] == '\0')
        buf_puts(out, node->function);
    else if (node->line > 0)
        buf_printf(out, "%s:%d %s", text_base_name(node->file), node->line, node->function);
    else
        buf_printf(out, "%s %s", text_base_name(node->file), node->function);
}

static int odd_first(const void *a, const void *b)
{
    const struct tree_node *const *first = a, *const *second = b;
    return rank_set_compare(&(*first)->ranks, &(*second)->ranks);
}

static int most_first(const void *a, const void *b)
{
    const struct leaf_word *first = a, *second = b;
    return rank_set_compare(&second->ranks, &first->ranks);
}

static void sort_words(struct leaf_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        rank_set_sort(&words->items[i].ranks);
    if (words->count > 1)
        qsort(words->items, words->count, sizeof(*words->items), most_first);
}

static void sort_node(struct tree_node *node)
{
    rank_set_sort(&node->ranks);
    rank_set_sort(&node->leaf.ranks);
    rank_set_sort(&node->leaf.gil);
    sort_words(&node->leaf.doings);
    sort_words(&node->leaf.names);
    for (size_t i = 0; i < node->count; i++)
        sort_node(node->children[i]);
    if (node->count > 1)
        qsort(node->children, node->count, sizeof(struct tree_node *), odd_first);
}

void tree_sort(struct stack_tree *tree)
{
    for (int i = 0; i < STACK_ROLES; i++)
        sort_node(tree->roots[i]);
}

void tree_leaf_doing(const struct tree_leaf *leaf, struct buf *out)
{
    for (size_t i = 0; i < leaf->doings.count && i < WORDS_SHOWN; i++) {
        const struct leaf_word *doing = &leaf->doings.items[i];
        buf_printf(out, "%s%s", i > 0 ? ", " : "", doing->word);
        if (leaf->doings.count > 1) {
            buf_puts(out, " (");
            rank_ranges_bare(doing->ranks.ranks, (int)doing->ranks.count, out);
            buf_putc(out, ')');
        }
    }
    if (leaf->doings.count > WORDS_SHOWN)
        buf_puts(out, ", ...");
}

void tree_leaf_names(const struct tree_leaf *leaf, struct buf *out)
{
    for (size_t i = 0; i < leaf->names.count && i < WORDS_SHOWN; i++)
        buf_printf(out, "%s%s", i > 0 ? ", " : "", leaf->names.items[i].word);
    if (leaf->names.count > WORDS_SHOWN)
        buf_puts(out, ", ...");
}
