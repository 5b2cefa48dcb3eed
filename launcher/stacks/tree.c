/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"
#include "base/text.h"
#include "model/plan/rank_list.h"

/* A job has far fewer; an agent that lies must not cost more. */
#define NODES_MAX 50000
#define CHILDREN_MAX 256
#define DEPTH_MAX 128
#define WORDS_MAX 16
#define TEXT_MAX 300 /* bytes of a name */

#define WORDS_SHOWN 3
#define HEAD_FRAMES 2 /* of a long chain, at either end */
#define TAIL_FRAMES 4
#define INDENT_MAX 8

/* A set of ranks that grows. */
struct rank_set {
    int *ranks;
    size_t count, room;
};

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

/* Cheap if a rank comes again at once. */
static void rank_set_add(struct rank_set *set, int rank)
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

static void destroy_words(struct leaf_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->items[i].word);
        free(words->items[i].ranks.ranks);
    }
    free(words->items);
}

/* And all below it. */
static void tree_node_destroy(struct tree_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        tree_node_destroy(node->children[i]);
    destroy_words(&node->leaf.doings);
    destroy_words(&node->leaf.names);
    free(node->ranks.ranks);
    free(node->leaf.ranks.ranks);
    free(node->leaf.gil.ranks);
    free(node->children);
    free(node->function);
    free(node->file);
    free(node->trouble);
    free(node);
}

void stack_frame_text(const struct stack_frame *frame, struct buf *out)
{
    if (frame->file[0] == '\0')
        buf_puts(out, frame->function);
    else if (frame->line > 0)
        buf_printf(out, "%s:%d %s", text_base_name(frame->file), frame->line, frame->function);
    else
        buf_printf(out, "%s %s", text_base_name(frame->file), frame->function);
}

/* Borrowed. */
static struct stack_frame frame_of(const struct tree_node *node)
{
    return (struct stack_frame){node->function, node->file, node->line, node->native};
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

static void tree_sort(struct stack_tree *tree)
{
    for (int i = 0; i < STACK_ROLES; i++)
        sort_node(tree->roots[i]);
}

/* "calls futex", "calls futex (0-2), running (3)". Appends nothing if nothing is known. `told`:
 * tells the ranks of each word, if there are several. */
static void put_words(const struct leaf_words *words, bool told, struct buf *out)
{
    for (size_t i = 0; i < words->count && i < WORDS_SHOWN; i++) {
        const struct leaf_word *item = &words->items[i];
        buf_printf(out, "%s%s", i > 0 ? ", " : "", item->word);
        if (told && words->count > 1) {
            buf_puts(out, " (");
            rank_ranges_bare(item->ranks.ranks, (int)item->ranks.count, out);
            buf_putc(out, ')');
        }
    }
    if (words->count > WORDS_SHOWN)
        buf_puts(out, ", ...");
}

struct stack_tree *stack_tree_create(void)
{
    struct stack_tree *tree = mem_alloc(sizeof(*tree));
    for (int i = 0; i < STACK_ROLES; i++)
        tree->roots[i] = mem_alloc(sizeof(struct tree_node));
    return tree;
}

void stack_tree_destroy(struct stack_tree *tree)
{
    for (int i = 0; tree != NULL && i < STACK_ROLES; i++)
        tree_node_destroy(tree->roots[i]);
    free(tree);
}

static char *plain(const char *text)
{
    char *copy = mem_strndup(text, TEXT_MAX);
    plain_line(copy, '?');
    return copy;
}

static struct tree_node *find_child(const struct tree_node *parent, const struct stack_frame *frame)
{
    for (size_t i = 0; i < parent->count; i++) {
        struct tree_node *child = parent->children[i];
        if (child->trouble == NULL && child->line == frame->line &&
            strcmp(child->function, frame->function) == 0 &&
            strcmp(text_base_name(child->file), text_base_name(frame->file)) == 0)
            return child;
    }
    return NULL;
}

static struct tree_node *new_child(struct stack_tree *tree, struct tree_node *parent)
{
    if (tree->nodes == NODES_MAX || parent->count == CHILDREN_MAX)
        return NULL;
    tree->nodes++;
    return MEM_ADD(parent->children, parent->count) = mem_alloc(sizeof(struct tree_node));
}

/* NULL: there are too many. */
static struct tree_node *child_of(struct stack_tree *tree, struct tree_node *parent,
                                  const struct stack_frame *frame)
{
    struct tree_node *child = find_child(parent, frame);
    if (child != NULL)
        return child;
    size_t length = strlen(frame->file); /* of a long path, the end */
    char *function AUTO_FREE = plain(frame->function);
    char *file AUTO_FREE = plain(frame->file + (length > TEXT_MAX ? length - TEXT_MAX : 0));
    child = find_child(parent, &(struct stack_frame){function, file, frame->line, false});
    struct tree_node *made = child == NULL ? new_child(tree, parent) : NULL;
    if (made == NULL)
        return child;
    *made = (struct tree_node){
        .function = function, .file = file, .line = frame->line, .native = frame->native};
    function = file = NULL;
    return made;
}

static struct tree_node *trouble_of(struct stack_tree *tree, struct tree_node *parent,
                                    const char *trouble)
{
    char *text AUTO_FREE = plain(trouble);
    for (size_t i = 0; i < parent->count; i++) {
        struct tree_node *child = parent->children[i];
        if (child->trouble != NULL && strcmp(child->trouble, text) == 0)
            return child;
    }
    struct tree_node *child = new_child(tree, parent);
    if (child != NULL)
        child->trouble = mem_strdup(text);
    return child;
}

static void add_word(struct leaf_words *words, const char *word, int rank)
{
    if (word == NULL || word[0] == '\0')
        return;
    char *text AUTO_FREE = plain(word);
    size_t i = 0;
    while (i < words->count && strcmp(words->items[i].word, text) != 0)
        i++;
    if (i == words->count && i < WORDS_MAX) {
        words->items = mem_resize_array(words->items, i + 1, sizeof(*words->items));
        words->items[words->count++] = (struct leaf_word){.word = mem_strdup(text)};
    }
    if (i < words->count)
        rank_set_add(&words->items[i].ranks, rank);
}

void stack_tree_add(struct stack_tree *tree, const struct stack *stack)
{
    struct tree_node *node = tree->roots[stack->role < STACK_ROLES ? stack->role : STACK_OTHER];
    rank_set_add(&node->ranks, stack->rank);
    bool troubled = stack->count == 0;
    struct tree_node *next = node;
    for (size_t i = 0; i < stack->count + troubled && i < DEPTH_MAX && next != NULL; i++) {
        next = troubled ? trouble_of(tree, node, stack->trouble)
                        : child_of(tree, node, &stack->frames[i]);
        tree->native = tree->native || (!troubled && stack->frames[i].native);
        node = next != NULL ? next : node;
        if (next != NULL)
            rank_set_add(&node->ranks, stack->rank);
    }
    rank_set_add(&node->leaf.ranks, stack->rank);
    if (stack->holds_gil)
        rank_set_add(&node->leaf.gil, stack->rank);
    node->leaf.stacks++;
    add_word(&node->leaf.doings, stack->doing, stack->rank);
    add_word(&node->leaf.names, stack->name, stack->rank);
}

bool stack_tree_is_empty(const struct stack_tree *tree)
{
    for (int i = 0; i < STACK_ROLES; i++) {
        if (tree->roots[i]->ranks.count > 0)
            return false;
    }
    return true;
}

struct visit {
    void (*leaf)(void *context, const struct stack_leaf *leaf);
    void *context;
    enum stack_role role;
    struct stack_frame frames[DEPTH_MAX];
};

static void visit_node(struct visit *visit, const struct tree_node *node, size_t depth)
{
    const struct tree_leaf *leaf = &node->leaf;
    if (leaf->ranks.count > 0) {
        struct buf doing AUTO_BUF = BUF_INIT(4096), names AUTO_BUF = BUF_INIT(4096);
        put_words(&leaf->doings, true, &doing);
        put_words(&leaf->names, false, &names);
        visit->leaf(visit->context,
                    &(struct stack_leaf){.role = visit->role,
                                         .frames = visit->frames,
                                         .count = depth,
                                         .ranks = leaf->ranks.ranks,
                                         .rank_count = leaf->ranks.count,
                                         .gil_ranks = leaf->gil.ranks,
                                         .gil_count = leaf->gil.count,
                                         .stacks = leaf->stacks,
                                         .doing = buf_text(&doing),
                                         .names = buf_text(&names),
                                         .trouble = node->trouble != NULL ? node->trouble : ""});
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct tree_node *child = node->children[i];
        bool framed = child->trouble == NULL;
        if (framed)
            visit->frames[depth] = frame_of(child);
        visit_node(visit, child, depth + (framed ? 1 : 0));
    }
}

void stack_tree_visit(struct stack_tree *tree,
                      void (*leaf)(void *context, const struct stack_leaf *leaf), void *context)
{
    struct visit visit = {.leaf = leaf, .context = context};
    tree_sort(tree);
    for (int i = 0; i < STACK_ROLES; i++) {
        visit.role = (enum stack_role)i;
        visit_node(&visit, tree->roots[i], 0);
    }
}

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
    if (leaf->doings.count > 0)
        buf_puts(out, "; ");
    put_words(&leaf->doings, true, out);
    if (leaf->gil.count > 0) {
        bool all = leaf->gil.count == leaf->ranks.count;
        buf_puts(out, all ? "; holds the GIL" : "; holds the GIL: ");
        if (!all)
            put_ranks(&leaf->gil, out);
    }
    if (leaf->names.count > 0)
        buf_puts(out, leaf->names.count > 1 ? "; threads " : "; thread ");
    put_words(&leaf->names, false, out);
    if (leaf->stacks > leaf->ranks.count)
        buf_printf(out, "; %zu %s", leaf->stacks, noun);
}

/* The end of the line that begins with `node`: as long as all of its ranks go on in one way. */
static const struct tree_node *chain_end(const struct tree_node *node, size_t *length)
{
    for (*length = 1; node->count == 1 && node->leaf.ranks.count == 0; ++*length)
        node = node->children[0];
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
            struct stack_frame frame = frame_of(node);
            stack_frame_text(&frame, out);
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
    static const char *const nouns[STACK_ROLES] = {"threads", "threads", "stacks"};
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
    const struct stack_tree_style style = {
        "hvdrun: ", tree->native ? "stacks, " : "Python stacks, ", STACK_TREE_LINES};
    stack_tree_print(tree, &style, out);
}
