/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/tree_node.h"

#include <stdlib.h>
#include <string.h>

#include "model/plan/rank_ranges.h"

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

const char *tree_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void tree_node_frame(const struct tree_node *node, struct buf *out)
{
    if (node->file[0] == '\0')
        buf_puts(out, node->function);
    else if (node->line > 0)
        buf_printf(out, "%s:%d %s", tree_base_name(node->file), node->line, node->function);
    else
        buf_printf(out, "%s %s", tree_base_name(node->file), node->function);
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
