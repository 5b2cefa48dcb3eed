/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/plan/rank_list.h"
#include "stacks/tree.h"
#include "stacks/tree_node.h"

#define HEAD_FRAMES 2 /* of a long chain, at either end */
#define TAIL_FRAMES 4
#define INDENT_MAX 8

struct text {
    struct buf *out;
    int lines, lines_max;
    size_t left_out; /* branches */
};

static void put_ranks(const struct rank_set *ranks, struct buf *out)
{
    buf_putc(out, '[');
    rank_ranges_bare(ranks->ranks, (int)ranks->count, out);
    buf_putc(out, ']');
}

/* What is known of the stacks that end at the end of a line. */
static void put_leaf(const struct tree_leaf *leaf, const char *noun, struct buf *out)
{
    struct buf doing AUTO_BUF = BUF_INIT(4096);
    tree_leaf_doing(leaf, &doing);
    if (doing.length > 0)
        buf_printf(out, "; %s", buf_text(&doing));
    if (leaf->gil.count > 0) {
        bool all = leaf->gil.count == leaf->ranks.count;
        buf_puts(out, all ? "; holds the GIL" : "; holds the GIL: ");
        if (!all)
            put_ranks(&leaf->gil, out);
    }
    struct buf names AUTO_BUF = BUF_INIT(4096);
    tree_leaf_names(leaf, &names);
    if (names.length > 0)
        buf_printf(out, "; thread%s %s", leaf->names.count > 1 ? "s" : "", buf_text(&names));
    if (leaf->stacks > leaf->ranks.count)
        buf_printf(out, "; %zu %s", leaf->stacks, noun);
}

/* The end of the line that begins with `node`: as long as all of its ranks go on in one way. */
static const struct tree_node *chain_end(const struct tree_node *node, size_t *length)
{
    *length = 1;
    while (node->count == 1 && node->leaf.ranks.count == 0) {
        node = node->children[0];
        ++*length;
    }
    return node;
}

static void put_chain(const struct tree_node *node, size_t length, struct buf *out)
{
    bool cut = length > HEAD_FRAMES + TAIL_FRAMES + 1;
    for (size_t i = 0; i < length; i++) {
        if (cut && i == HEAD_FRAMES)
            buf_printf(out, " > (%zu more)", length - HEAD_FRAMES - TAIL_FRAMES);
        if (!cut || i < HEAD_FRAMES || i >= length - TAIL_FRAMES) {
            buf_puts(out, i > 0 ? " > " : "");
            tree_node_frame(node, out);
        }
        node = i + 1 < length ? node->children[0] : node;
    }
}

static bool begin_line(struct text *text, const struct rank_set *ranks, int depth)
{
    if (text->lines >= text->lines_max) {
        text->left_out++;
        return false;
    }
    text->lines++;
    int indent = 4 + 2 * (depth < INDENT_MAX ? depth : INDENT_MAX);
    buf_printf(text->out, "%*s", indent, "");
    put_ranks(ranks, text->out);
    buf_putc(text->out, ' ');
    return true;
}

static void put_node(struct text *text, const struct tree_node *node, int depth, const char *noun)
{
    size_t length = 0;
    if (!begin_line(text, &node->ranks, depth))
        return;
    if (node->trouble != NULL) {
        buf_printf(text->out, "%s\n",
                   node->trouble[0] != '\0' ? node->trouble : "changes too fast to be read");
        return;
    }
    const struct tree_node *end = chain_end(node, &length);
    put_chain(node, length, text->out);
    if (end->count == 0)
        put_leaf(&end->leaf, noun, text->out);
    buf_putc(text->out, '\n');
    bool some_end = end->count > 0 && end->leaf.ranks.count > 0;
    if (some_end && begin_line(text, &end->leaf.ranks, depth + 1)) {
        buf_puts(text->out, "here");
        put_leaf(&end->leaf, noun, text->out);
        buf_putc(text->out, '\n');
    }
    for (size_t i = 0; i < end->count; i++)
        put_node(text, end->children[i], depth + 1, noun);
}

void stack_tree_print(struct stack_tree *tree, const struct stack_tree_style *style,
                      struct buf *out)
{
    static const char *const headings[] = {
#define ROLE_HEADING(name, word, heading) heading,
        STACK_ROLE_LIST(ROLE_HEADING)
#undef ROLE_HEADING
    };
    static const char *const nouns[STACK_ROLES] = {"threads", "threads", "tasks", "stacks"};
    struct text text = {.out = out, .lines_max = style->lines};
    tree_sort(tree);
    for (int i = 0; i < STACK_ROLES; i++) {
        const struct tree_node *root = tree->roots[i];
        if (root->ranks.count == 0)
            continue;
        if (text.lines < text.lines_max)
            buf_printf(out, "%s%s%s:\n", style->prefix, style->kind, headings[i]);
        for (size_t j = 0; j < root->count; j++)
            put_node(&text, root->children[j], 0, nouns[i]);
    }
    if (text.left_out > 0)
        buf_printf(out, "%s%zu more branch%s not shown, to keep this list short\n", style->prefix,
                   text.left_out, text.left_out == 1 ? " is" : "es are");
}

void stack_tree_text(struct stack_tree *tree, struct buf *out)
{
    const struct stack_tree_style style = {"hvdrun: ", "Python stacks, ", STACK_TREE_LINES};
    stack_tree_print(tree, &style, out);
}
