/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/look.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "driver/run/exits.h"
#include "driver/run/rank_states.h"
#include "stacks/tree.h"

#define TEXT_MAX ((size_t)1 << 20)
#define MISSING_SHOWN 8
#define REMARKS_SHOWN 2 /* of one host */
#define REMARK_MAX 500

struct answer {
    struct node_link *node;
    Hvdrun__StateReport *report; /* NULL: not yet */
};

struct look {
    struct job *job;
    struct answer *answers; /* of the nodes that were asked */
    size_t count, wanted;   /* wanted: answers that are still missing */
};

struct look_asker {
    void (*done)(void *context, const struct look *look);
    void *context;
};

struct looks {
    struct job *job;
    bool native;
    struct loop_timer *wait; /* for the answers */
    uint32_t round;
    struct look *look; /* that is under way; NULL */
    struct look_asker *askers;
    size_t count;
};

static void look_destroy(struct look *look)
{
    for (size_t i = 0; look != NULL && i < look->count; i++) {
        if (look->answers[i].report != NULL)
            hvdrun__state_report__free_unpacked(look->answers[i].report, NULL);
    }
    if (look != NULL)
        free(look->answers);
    free(look);
}

/* An asker may ask again at once: that is another look. */
static void finish(void *context)
{
    struct looks *looks = context;
    struct look *look = looks->look;
    struct look_asker *askers AUTO_FREE = looks->askers;
    size_t count = looks->count;
    loop_timer_clear(looks->wait);
    looks->look = NULL;
    looks->askers = NULL;
    looks->count = 0;
    for (size_t i = 0; i < count; i++)
        askers[i].done(askers[i].context, look);
    look_destroy(look);
}

struct looks *looks_create(struct job *job, bool native)
{
    struct looks *looks = mem_alloc(sizeof(*looks));
    *looks = (struct looks){.job = job, .native = native};
    looks->wait = loop_timer_create(job->loop, finish, looks);
    return looks;
}

void looks_destroy(struct looks *looks)
{
    if (looks == NULL)
        return;
    stack_tree_destroy(looks->job->stacks);
    looks->job->stacks = NULL;
    look_destroy(looks->look);
    loop_timer_destroy(looks->wait);
    free(looks->askers);
    free(looks);
}

static void begin(struct looks *looks)
{
    struct job *job = looks->job;
    struct look *look = mem_alloc(sizeof(*look));
    Hvdrun__StateRequest message = HVDRUN__STATE_REQUEST__INIT;
    *look = (struct look){.job = job};
    look->answers = mem_array((size_t)job->node_count + 1, sizeof(*look->answers));
    message.round = ++looks->round;
    message.native = looks->native;
    for (int i = 0; i < job->node_count; i++) {
        if (!node_link_alive(job->nodes[i]) || job->nodes[i]->state < NODE_UP)
            continue;
        node_link_send(job->nodes[i], FRAME_STATE_REQUEST, job->epoch, &message.base);
        look->answers[look->count++].node = job->nodes[i];
    }
    look->wanted = look->count;
    looks->look = look;
    int64_t wait_ms = looks->native ? LOOK_NATIVE_WAIT_MS : LOOK_WAIT_MS;
    loop_timer_set(looks->wait, look->wanted > 0 ? wait_ms : 0);
}

void looks_ask(struct looks *looks, void (*done)(void *context, const struct look *look),
               void *context)
{
    looks->askers = mem_resize_array(looks->askers, looks->count + 1, sizeof(*looks->askers));
    looks->askers[looks->count++] = (struct look_asker){done, context};
    if (looks->look == NULL)
        begin(looks);
}

void looks_forget(struct looks *looks, const void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < looks->count; i++) {
        if (looks->askers[i].context != context)
            looks->askers[kept++] = looks->askers[i];
    }
    looks->count = kept;
}

static struct answer *answer_of(const struct looks *looks, const struct node_link *node,
                                uint32_t round)
{
    if (looks->look == NULL || round != looks->round)
        return NULL; /* too late, or not asked for */
    for (size_t i = 0; i < looks->look->count; i++) {
        struct answer *answer = &looks->look->answers[i];
        if (answer->node == node && answer->report == NULL)
            return answer;
    }
    return NULL;
}

int looks_report(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    Hvdrun__StateReport *message = hvdrun__state_report__unpack(NULL, frame->length, frame->body);
    bool right = message != NULL && message->n_seats == message->n_texts;
    struct looks *looks = right && message->native ? job->native_looks : job->looks;
    struct answer *answer = right ? answer_of(looks, node, message->round) : NULL;
    if (answer == NULL) {
        if (message != NULL)
            hvdrun__state_report__free_unpacked(message, NULL);
        return right ? 0 : -1;
    }
    answer->report = message;
    if (--looks->look->wanted == 0)
        finish(looks);
    return 0;
}

static bool is_wanted(const struct look_ranks *ranks, int rank)
{
    return ranks == NULL || (rank >= 0 && rank < ranks->count && ranks->wanted[rank]);
}

struct stack_walk {
    void (*each)(void *context, int seat, const struct look_stack *stack);
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
                          .trouble = source->trouble};
    if (!is_wanted(walk->ranks, stack.rank) ||
        (source->bare && !walk->bare && source->trouble[0] == '\0'))
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
    walk->each(walk->context, (int)source->seat, &(struct look_stack){&stack, source->bare});
}

static void walk_all(const struct stack_walk *walk, const struct look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct answer *answer = &look->answers[i];
        for (size_t j = 0; answer->report != NULL && j < answer->report->n_stacks; j++) {
            const Hvdrun__PythonStack *stack = answer->report->stacks[j];
            if (exits_seat_of(look->job, answer->node, stack->seat))
                walk_stack(walk, look->job, stack);
        }
    }
}

void look_walk(const struct look *look,
               void (*each)(void *context, int seat, const struct look_stack *stack), void *context)
{
    walk_all(&(struct stack_walk){.each = each, .context = context, .bare = true}, look);
}

static void add_to_tree(void *context, int seat, const struct look_stack *stack)
{
    (void)seat;
    stack_tree_add(context, stack->stack);
}

struct stack_tree *look_tree(const struct look *look, bool bare, const struct look_ranks *ranks)
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
        hash = hash_add(hash, frame->function, strlen(frame->function) + 1);
        hash = hash_add(hash, frame->file, strlen(frame->file) + 1);
        hash = hash_add(hash, &frame->line, sizeof(frame->line));
    }
    return stack->count > 0 ? hash | 1 : 0;
}

void look_missing(const struct look *look, struct buf *out)
{
    size_t missing = 0;
    for (size_t i = 0; i < look->count; i++) {
        if (look->answers[i].report != NULL)
            continue;
        if (missing++ < MISSING_SHOWN)
            buf_printf(out, "%s%s", missing > 1 ? ", " : "", look->answers[i].node->host);
    }
    if (missing > MISSING_SHOWN)
        buf_printf(out, " and %zu more", missing - MISSING_SHOWN);
}

void look_remarks(const struct look *look, struct buf *out)
{
    size_t shown = 0;
    for (size_t i = 0; i < look->count && shown < MISSING_SHOWN; i++) {
        const struct answer *answer = &look->answers[i];
        size_t count = answer->report != NULL ? answer->report->n_remarks : 0;
        for (size_t j = 0; j < count && j < REMARKS_SHOWN; j++, shown++)
            buf_printf(out, "%s%s: %.*s", shown > 0 ? "\n" : "", answer->node->host, REMARK_MAX,
                       answer->report->remarks[j]);
    }
}

static void add_states(const struct look *look, struct rank_states *states)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct answer *answer = &look->answers[i];
        for (size_t j = 0; answer->report != NULL && j < answer->report->n_seats; j++) {
            uint32_t seat = answer->report->seats[j];
            if (exits_seat_of(look->job, answer->node, seat))
                rank_states_add(states, job_seat_rank(look->job, (int)seat), answer->node->host,
                                answer->report->texts[j]);
        }
    }
}

/* The states, the tree, and who did not answer. */
static void put_all(const struct look *look, struct stack_tree *tree, struct buf *out)
{
    struct rank_states *states = rank_states_create();
    struct buf missing AUTO_BUF = BUF_INIT(TEXT_MAX);
    add_states(look, states);
    rank_states_text(states, out);
    rank_states_destroy(states);
    stack_tree_text(tree, out);
    look_missing(look, &missing);
    if (missing.length > 0)
        buf_printf(out, "hvdrun: no answer about the ranks on %s\n", buf_text(&missing));
}

void look_text(const struct look *look, struct buf *out)
{
    struct stack_tree *tree = look_tree(look, true, NULL);
    put_all(look, tree, out);
    stack_tree_destroy(tree);
}

void look_show(const struct look *look)
{
    struct job *job = look->job;
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    stack_tree_destroy(job->stacks);
    job->stacks = look_tree(look, false, NULL);
    put_all(look, job->stacks, &text);
    if (text.length > 0)
        output_block(job->output, buf_text(&text));
}
