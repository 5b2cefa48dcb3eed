/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stacks/look_driver.h"

#include <ctype.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "features/stacks/look_driver_test.h"
#include "model/plan/rank_list.h"
#include "stacks/tree.h"

#define LEAVES_MAX 500

static json_t *numbers(const int *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *frames_json(const struct stack_leaf *leaf)
{
    json_t *list = json_array();
    for (size_t i = 0; i < leaf->count; i++) {
        const struct stack_frame *frame = &leaf->frames[i];
        json_t *object = json_object();
        json_object_set_new(object, "function", json_text(frame->function));
        json_object_set_new(object, "file", json_text_or_null(frame->file));
        json_object_set_new(object, "line",
                            frame->line > 0 ? json_integer(frame->line) : json_null());
        if (frame->native)
            json_object_set_new(object, "native", json_true());
        json_array_append_new(list, object);
    }
    return list;
}

static void add_leaf(void *context, const struct stack_leaf *leaf)
{
    static const char *const words[] = {
#define ROLE_WORD(name, word, heading) word,
        STACK_ROLE_LIST(ROLE_WORD)
#undef ROLE_WORD
    };
    json_t *list = context;
    if (json_array_size(list) >= LEAVES_MAX)
        return;
    json_t *object = json_object();
    json_object_set_new(object, "ranks", numbers(leaf->ranks, leaf->rank_count));
    json_object_set_new(object, "thread", json_string(words[leaf->role]));
    json_object_set_new(object, "count", json_integer((json_int_t)leaf->stacks));
    json_object_set_new(object, "doing", json_text_or_null(leaf->doing));
    json_object_set_new(object, "names", json_text_or_null(leaf->names));
    json_object_set_new(object, "gil_ranks", numbers(leaf->gil_ranks, leaf->gil_count));
    json_object_set_new(object, "frames", frames_json(leaf));
    json_object_set_new(object, "trouble", json_text_or_null(leaf->trouble));
    json_array_append_new(list, object);
}

struct json_t *stacks_json(struct stack_tree *tree)
{
    json_t *list = json_array();
    stack_tree_visit(tree, add_leaf, list);
    return list;
}

/*
 * What the ranks are doing when a time limit has passed, as text for the user. Pure.
 *
 * Ranks that do the same are shown together, by the one with the lowest number. The same: their
 * processes have equal names, states, calls and stacks; only the pids may differ. The groups come
 * in the order of their first ranks. The text is bounded: groups that would make it longer than
 * RANK_STATES_LINES are only named.
 */

const char stacks_feature[] = "the stacks of all ranks, Python and native";

struct rank_look {
    int rank;
    char *host, *text;
    char *kind; /* `text` without the pids: the same for ranks that do the same */
    bool told;
};

struct rank_states {
    struct rank_look *items;
    size_t count;
};

struct rank_states *rank_states_create(void)
{
    return mem_alloc(sizeof(struct rank_states));
}

void rank_states_destroy(struct rank_states *states)
{
    if (states == NULL)
        return;
    for (size_t i = 0; i < states->count; i++) {
        free(states->items[i].host);
        free(states->items[i].text);
        free(states->items[i].kind);
    }
    free(states->items);
    free(states);
}

/* "pid 4711 (python3): ..." becomes "pid  (python3): ...". */
static char *without_pids(const char *text)
{
    char *kind = mem_strdup(text), *to = kind;
    for (const char *at = text; *at != '\0';) {
        bool pid = strncmp(at, "pid ", 4) == 0 && (at == text || at[-1] == ' ');
        size_t length = pid ? 4 : 1;
        memcpy(to, at, length);
        to += length;
        at += length;
        while (pid && isdigit((unsigned char)*at))
            at++;
    }
    *to = '\0';
    return kind;
}

void rank_states_add(struct rank_states *states, int rank, const char *host, const char *text)
{
    MEM_ADD(states->items, states->count) = (struct rank_look){.rank = rank,
                                                               .host = mem_strdup(host),
                                                               .text = mem_strdup(text),
                                                               .kind = without_pids(text)};
}

static int by_rank(const void *a, const void *b)
{
    const struct rank_look *first = a, *second = b;
    return first->rank < second->rank ? -1 : first->rank > second->rank;
}

static int lines_in(const char *text)
{
    int lines = 1;
    for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    return lines;
}

/* Takes all ranks that do what item `first` does. Returns their number. */
static int take_group(struct rank_states *states, size_t first, int *ranks)
{
    int count = 0;
    for (size_t i = first; i < states->count; i++) {
        struct rank_look *item = &states->items[i];
        if (item->told || strcmp(item->kind, states->items[first].kind) != 0)
            continue;
        item->told = true;
        ranks[count++] = item->rank;
    }
    return count;
}

static void tell_group(const struct rank_look *shown, const int *ranks, int count, struct buf *out)
{
    buf_puts(out, "hvdrun: ");
    rank_ranges(ranks, count, out);
    if (count > 1)
        buf_printf(out, " do the same, here rank %d", shown->rank);
    buf_printf(out, " on %s: %s\n", shown->host, shown->text);
}

/* Those that no group has told. */
static void tell_rest(const struct rank_states *states, int *ranks, struct buf *out)
{
    int count = 0;
    for (size_t i = 0; i < states->count; i++) {
        if (!states->items[i].told)
            ranks[count++] = states->items[i].rank;
    }
    if (count == 0)
        return;
    buf_puts(out, "hvdrun: ");
    rank_ranges(ranks, count, out);
    buf_printf(out, "%s not shown, to keep this list short\n", count == 1 ? " is" : " are");
}

void rank_states_text(struct rank_states *states, struct buf *out)
{
    if (states->count == 0)
        return;
    int lines = 0, *ranks AUTO_FREE = mem_array(states->count, sizeof(*ranks));
    qsort(states->items, states->count, sizeof(*states->items), by_rank);
    for (size_t i = 0; i < states->count; i++) {
        struct rank_look *item = &states->items[i];
        int more = lines_in(item->text);
        if (item->told || (lines > 0 && lines + more > RANK_STATES_LINES))
            continue;
        int count = take_group(states, i, ranks);
        tell_group(item, ranks, count, out);
        lines += more;
    }
    tell_rest(states, ranks, out);
}

#define TEXT_MAX ((size_t)1 << 20)
#define REMARKS_SHOWN 8
#define HOST_REMARKS_SHOWN 2
#define REMARK_MAX 500

/* NULL: the host has not answered. */
static const Hvdrun__StateReport *report_of(const struct ask *look, size_t host)
{
    return (const Hvdrun__StateReport *)look->answers[host].message;
}

/* Its lists belong together. */
static int check_lists(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    (void)job, (void)node;
    const Hvdrun__StateReport *report = (const Hvdrun__StateReport *)*answer;
    return report->n_seats == report->n_texts ? 0 : -1;
}

void look_ask(struct job *job, enum look_depth depth, ask_done *done, void *context)
{
    static const struct question question = {&topic_states, check_lists, .keep = true};
    Hvdrun__StateRequest request = HVDRUN__STATE_REQUEST__INIT;
    request.depth = depth;
    ask_all(job, &question, &request.base, depth > LOOK_PYTHON ? LOOK_NATIVE_WAIT_MS : LOOK_WAIT_MS,
            done, context);
}

static bool is_wanted(const struct look_ranks *ranks, int rank)
{
    return ranks == NULL || (rank >= 0 && rank < ranks->count && ranks->wanted[rank]);
}

struct stack_walk {
    void (*each)(void *context, int seat, const struct stack *stack);
    void *context;
    const struct look_ranks *ranks;
    bool bare;
};

static void walk_stack(const struct stack_walk *walk, const struct job *job,
                       const Hvdrun__PythonStack *source)
{
    struct stack stack = {.rank = job_seat_rank(job, (int)source->seat),
                          .role = source->role < STACK_ROLES ? (enum stack_role)source->role
                                                             : STACK_OTHER,
                          .holds_gil = source->holds_gil,
                          .bare = source->bare,
                          .held = source->held,
                          .name = source->name,
                          .doing = source->doing,
                          .trouble = source->trouble,
                          .call = source->call,
                          .mpi_helper = source->mpi_helper};
    bool tells = !source->bare || source->n_frames > 1 || source->trouble[0] != '\0';
    if (!is_wanted(walk->ranks, stack.rank) || (!tells && !walk->bare))
        return;
    struct stack_frame *frames AUTO_FREE = mem_array(source->n_frames + 1, sizeof(*frames));
    for (size_t i = 0; i < source->n_frames; i++) {
        const Hvdrun__PythonFrame *frame = source->frames[i];
        frames[i] = (struct stack_frame){.function = frame->function,
                                         .file = frame->file,
                                         .line = frame->line <= INT_MAX ? (int)frame->line : 0,
                                         .native = frame->native};
    }
    stack.frames = frames;
    stack.count = source->n_frames;
    walk->each(walk->context, (int)source->seat, &stack);
}

static void walk_all(const struct stack_walk *walk, const struct ask *look)
{
    for (size_t i = 0; i < look->count; i++) {
        const Hvdrun__StateReport *report = report_of(look, i);
        for (size_t j = 0; report != NULL && j < report->n_stacks; j++) {
            if (job_seat_is_on(look->job, look->answers[i].node, report->stacks[j]->seat))
                walk_stack(walk, look->job, report->stacks[j]);
        }
    }
}

void look_walk(const struct ask *look,
               void (*each)(void *context, int seat, const struct stack *stack), void *context)
{
    walk_all(&(struct stack_walk){.each = each, .context = context, .bare = true}, look);
}

void look_walk_whole(const struct ask *look, void (*each)(void *context, int seat), void *context)
{
    for (size_t i = 0; i < look->count; i++) {
        const Hvdrun__StateReport *report = report_of(look, i);
        for (size_t j = 0; report != NULL && j < report->n_whole; j++) {
            if (job_seat_is_on(look->job, look->answers[i].node, report->whole[j]))
                each(context, (int)report->whole[j]);
        }
    }
}

static void add_to_tree(void *context, int seat, const struct stack *stack)
{
    (void)seat;
    stack_tree_add(context, stack);
}

struct stack_tree *look_tree(const struct ask *look, bool bare, const struct look_ranks *ranks)
{
    struct stack_tree *tree = stack_tree_create();
    walk_all(&(struct stack_walk){add_to_tree, tree, ranks, bare}, look);
    return tree;
}

uint64_t look_place(const struct stack *stack)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < stack->count; i++) {
        const struct stack_frame *frame = &stack->frames[i];
        if (frame->native && !stack->bare)
            break;
        hash = hash_add(hash, frame->function, strlen(frame->function) + 1);
        hash = hash_add(hash, frame->file, strlen(frame->file) + 1);
        hash = hash_add(hash, &frame->line, sizeof(frame->line));
    }
    return stack->count > 0 ? hash | 1 : 0;
}

void look_remarks(const struct ask *look, struct buf *out)
{
    size_t shown = 0;
    for (size_t i = 0; i < look->count && shown < REMARKS_SHOWN; i++) {
        const Hvdrun__StateReport *report = report_of(look, i);
        size_t count = report != NULL ? report->n_remarks : 0;
        for (size_t j = 0; j < count && j < HOST_REMARKS_SHOWN; j++, shown++)
            buf_printf(out, "%s%s: %.*s", shown > 0 ? "\n" : "", look->answers[i].node->host,
                       REMARK_MAX, report->remarks[j]);
    }
}

static void add_states(const struct ask *look, struct rank_states *states)
{
    const struct job *job = look->job;
    for (size_t i = 0; i < look->count; i++) {
        const struct node_link *node = look->answers[i].node;
        const Hvdrun__StateReport *report = report_of(look, i);
        for (size_t j = 0; report != NULL && j < report->n_seats; j++) {
            if (job_seat_is_on(job, node, report->seats[j]))
                rank_states_add(states, job_seat_rank(job, (int)report->seats[j]), node->host,
                                report->texts[j]);
        }
    }
}

/* The states, the tree, and who did not answer. */
static void put_all(const struct ask *look, struct stack_tree *tree, struct buf *out)
{
    struct rank_states *states = rank_states_create();
    struct buf missing AUTO_BUF = BUF_INIT(TEXT_MAX);
    add_states(look, states);
    rank_states_text(states, out);
    rank_states_destroy(states);
    stack_tree_text(tree, out);
    ask_missing(look, &missing);
    if (missing.length > 0)
        buf_printf(out, "hvdrun: no answer about the ranks on %s\n", buf_text(&missing));
}

void look_text(const struct ask *look, struct buf *out)
{
    struct stack_tree *tree = look_tree(look, true, NULL);
    put_all(look, tree, out);
    stack_tree_destroy(tree);
}

void look_show(const struct ask *look)
{
    struct job *job = look->job;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    stack_tree_destroy(job_part(job, stack_tree));
    job->own[PART_stack_tree] = look_tree(look, false, NULL);
    put_all(look, job_part(job, stack_tree), &text);
    if (text.length > 0)
        output_block(job->output, buf_text(&text));
}

/* The stacks that were shown last. */
static void report(const struct job *job, struct json_t *root)
{
    struct stack_tree *tree = job_part(job, stack_tree);
    if (tree != NULL && !stack_tree_is_empty(tree))
        json_object_set_new(root, "stacks", stacks_json(tree));
}

static void close_tree(struct job *job)
{
    stack_tree_destroy(job_part(job, stack_tree));
}

const struct driver_part stack_tree_part = {
    .name = "stack_tree", .close = close_tree, .report = report};
