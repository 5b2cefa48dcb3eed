/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of the tree. In a static job of many hosts, agents connect to each other as soon as the
 * workers start, if these need MPI, or else when the first of them takes a step of MPI with others.
 * Results of such steps go through a few agents to all.
 * The links between driver and agents serve all else, each agent until it is below another one, and
 * what does not arrive through others.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "features/tree/sender_driver.h"
#include "features/tree/tree_frames.h"
#include "io/tls_module.h"
#include "model/net/network.h"

const char tree_feature[] = "results of MPI fences go through other agents (--tree-from)";

static const char alone[] = "no other agent is below it";

struct place {
    char *address;  /* where others reach this host */
    uint32_t port;  /* 0: its agent does not wait for others */
    uint32_t order; /* the number of the last TREE_JOIN to it; 0: none */
    bool settled;   /* it has connected once, or could not */
    bool told;      /* its agent knows the tree: all results for it are parcels */
    /* Why its connection was given up, and not tried again: */
    bool was_late, above_was_silent;
    int tries; /* again after it was late */
};

struct tree {
    struct job *job;
    struct node_detour detour;
    struct tree_routes *routes; /* NULL: not begun */
    struct tree_sender sender;
    struct place *places;
    int size, settled, through, returned; /* agents; below others at most; of them back again */
    bool said_why;                        /* one is not below another */
    bool needed;                          /* some workers cannot do without MPI */
    struct loop_timer *begin;
    uint8_t key[TLS_KEY_SIZE];
};

static struct node_link *node_at(const struct tree *tree, int place)
{
    return tree->job->places[place];
}

/* NULL: there is none, or this node has no place in it. */
static struct tree *tree_with(const struct job *job, const struct node_link *node)
{
    struct tree *tree = job_part(job, tree);
    bool here = tree != NULL && tree->routes != NULL && node->place >= 0;
    return here && node->place < tree->size ? tree : NULL;
}

static bool is_told(const struct tree *tree, const struct node_link *node)
{
    return node->place >= 0 && node->place < tree->size && tree->places[node->place].told;
}

/* The detour of the nodes. */
static bool take_shared(void *context, struct node_link *node, enum frame_type type, uint32_t epoch,
                        const ProtobufCMessage *message, unsigned field, struct shared_block *block)
{
    const struct tree *tree = context;
    if (!tree_takes(type) || !is_told(tree, node))
        return false;
    bool own_link = type != FRAME_MPI_COLLECTED || block->length < TREE_LEAST_BYTES ||
                    block->length > TREE_MOST_BYTES;
    tree_sender_send(&tree->sender, node->place, own_link, type, epoch, message, field, block);
    return true;
}

/* What its link does not take yet waits, and answers keep their turn. */
static bool takes(void *context, const struct node_link *node, size_t length)
{
    const struct tree *tree = context;
    return is_told(tree, node)
               ? outbox_waiting(tree->sender.outbox, node->place) + length <= LINK_QUEUE_MAX
               : link_takes(node->link, length);
}

/* Ways that are given up */

static void say_left(struct node_link *node)
{
    const Hvdrun__TreeLeft left = HVDRUN__TREE_LEFT__INIT;
    node_link_send(node, FRAME_TREE_LEFT, 0, &left.base);
}

/* `say`: its agent does not know. */
static void give_up(struct tree *tree, int place, bool say)
{
    if (!tree_routes_give_up(tree->routes, place))
        return;
    tree->returned++;
    log_debug(&tree->job->log, "%s: not through another agent any more",
              node_at(tree, place)->host);
    if (say)
        say_left(node_at(tree, place));
    for (int i = place; i < tree->size; i++) {
        if (tree_toward(&tree->routes->shape, place, i) >= 0)
            outbox_return(tree->sender.outbox, i);
    }
}

/* When it has what it is owed, it may connect again. */
static void give_up_late(struct tree *tree, int place)
{
    give_up(tree, place, true);
    tree->places[place].was_late = true;
}

static void give_up_silent(struct tree *tree, int place)
{
    give_up(tree, place, true);
    tree->places[place].above_was_silent = true;
}

static void each_child(struct tree *tree, int place, void (*what)(struct tree *tree, int child))
{
    int first = tree_first_child(&tree->routes->shape, place);
    for (int i = 0; i < tree_children(&tree->routes->shape, place); i++)
        what(tree, first + i);
}

static bool is_late(void *context, int place)
{
    const struct tree *tree = context;
    return outbox_is_late(tree->sender.outbox, place);
}

/* Of the sender. A silent link is judged by its node's liveness: what went through others may have
 * come. What waits for the own link only is no fault of others. */
static void late(void *context, int place)
{
    struct tree *tree = context;
    struct node_link *node = node_at(tree, place);
    int blamed = tree_routes_blame(tree->routes, place, is_late, tree);
    if (!node_link_alive(node) || node->suspect || tree->job->state >= JOB_CLOSING)
        return;
    if (outbox_on_own_link(tree->sender.outbox, place)) {
        node_link_give_up(node, "its agent does not take what MPI ranks exchange");
        return;
    }
    if (blamed < 0)
        return;
    give_up_late(tree, blamed);
}

/* What agents say */

/* It is below another agent now, or will not be until that one has been silent. */
static void settle(struct tree *tree, int place)
{
    if (tree->places[place].settled)
        return;
    tree->places[place].settled = true;
    if (++tree->settled == tree->size)
        log_info(&tree->job->log, "%d of %d agents are below others", tree->routes->through,
                 tree->size);
}

/* One for all: a firewall may be in front of each. */
static void say_why(struct tree *tree, const struct node_link *node, const char *what,
                    const char *why)
{
    if (!tree->said_why)
        log_info(&tree->job->log, "%s: %s: %s", node->host, what, why);
    else
        log_debug(&tree->job->log, "%s: %s: %s", node->host, what, why);
    tree->said_why = true;
}

/* The start */

/* -1: some host has none. */
static int fill_addresses(struct tree *tree, struct error *err)
{
    const struct job *job = tree->job;
    size_t count = (size_t)tree->size;
    struct network_node *nodes AUTO_FREE = mem_array(count, sizeof(*nodes));
    char **addresses AUTO_FREE = mem_array(count, sizeof(*addresses));
    const struct strv *allowed = &job->settings->network_interfaces;
    for (int i = 0; i < tree->size; i++) {
        const struct node_link *node = node_at(tree, i);
        nodes[i] = (struct network_node){.name = node->host,
                                         .boot_id = node->hello->boot_id,
                                         .interfaces = node->hello->interfaces,
                                         .interface_count = node->hello->n_interfaces,
                                         .reached_by = node->stream.peer};
    }
    if (network_choose(nodes, tree->size, false, allowed->count > 0 ? allowed->items : NULL,
                       addresses, err) < 0)
        return -1;
    for (int i = 0; i < tree->size; i++)
        tree->places[i].address = addresses[i];
    return 0;
}

static void send_open(struct tree *tree, int place)
{
    Hvdrun__TreeOpen message = HVDRUN__TREE_OPEN__INIT;
    message.place = (uint32_t)place;
    message.size = (uint32_t)tree->routes->shape.size;
    message.radix = (uint32_t)tree->routes->shape.radix;
    message.key = (ProtobufCBinaryData){sizeof(tree->key), tree->key};
    message.address = tree->places[place].address;
    tree->places[place].told = true;
    node_link_send(node_at(tree, place), FRAME_TREE_OPEN, 0, &message.base);
}

/* Behind the results that its link still has to send: nothing may come by others before these. */
static void send_join(struct tree *tree, int place)
{
    const struct place *above = &tree->places[tree_parent(&tree->routes->shape, place)];
    Hvdrun__TreeJoin message = HVDRUN__TREE_JOIN__INIT;
    message.place = (uint32_t)place;
    message.size = (uint32_t)tree->routes->shape.size;
    message.radix = (uint32_t)tree->routes->shape.radix;
    message.key = (ProtobufCBinaryData){sizeof(tree->key), tree->key};
    message.address = above->address;
    message.port = above->port;
    message.number = ++tree->places[place].order;
    tree->places[place].told = true;
    tree->places[place].was_late = tree->places[place].above_was_silent = false;
    struct shared_block *nothing = shared_block_create(0);
    node_link_send_pieces(node_at(tree, place), FRAME_TREE_JOIN, 0, &message.base, 0, nothing);
    shared_block_release(nothing);
}

static void join_first(struct tree *tree, int place)
{
    tree_routes_renew(tree->routes, place);
    send_join(tree, place);
}

/* It, or the agent above, may only have been slow. Not before it and all below it have what was
 * sent. The agent above may still get old parcels for these, and would pass on some of them. */
static void try_again(struct tree *tree, int place)
{
    struct place *at = &tree->places[place];
    int parent = tree_parent(&tree->routes->shape, place);
    bool may = at->was_late ? at->tries < TREE_TRIES : at->above_was_silent;
    if (!may || tree->places[parent].port == 0 || !node_link_alive(node_at(tree, parent)) ||
        node_at(tree, parent)->suspect || outbox_owes_below(tree->sender.outbox, place) ||
        !tree_routes_renew(tree->routes, place))
        return;
    at->tries += at->was_late;
    send_join(tree, place);
}

/* Less is owed at or below this place. */
static void try_ways_again(struct tree *tree, int place)
{
    for (; place != TREE_ROOT; place = tree_parent(&tree->routes->shape, place))
        try_again(tree, place);
}

static int take_taken(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = tree_with(job, node);
    const Hvdrun__TreeTaken *message = frame->message;
    if (tree == NULL || outbox_confirm(tree->sender.outbox, node->place, message->serial) < 0)
        return -1;
    if (job->state < JOB_CLOSING)
        try_ways_again(tree, node->place);
    return 0;
}

static int take_opened(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = tree_with(job, node);
    const Hvdrun__TreeOpened *message = frame->message;
    bool works = message->problem[0] == '\0';
    if (tree == NULL || tree->places[node->place].port != 0 || (works && message->port == 0))
        return -1;
    if (!works)
        say_why(tree, node, alone, message->problem);
    tree->places[node->place].port = message->port;
    each_child(tree, node->place, works ? join_first : settle);
    return 0;
}

/* An agent that was told to join anew has given up what it says about an older order. -1: it never
 * had such an order. */
static int is_of_last_order(const struct tree *tree, const struct node_link *node, uint32_t number)
{
    uint32_t last = tree->places[node->place].order;
    return number == 0 || number > last ? -1 : number == last;
}

static int take_joined(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = tree_with(job, node);
    const Hvdrun__TreeJoined *message = frame->message;
    int present = tree == NULL ? -1 : is_of_last_order(tree, node, message->number);
    if (present <= 0)
        return present;
    if (!tree_routes_is_direct(tree->routes, node->place))
        return 0; /* known */
    if (!tree_routes_connect(tree->routes, node->place))
        say_left(node);
    if (tree->routes->through > tree->through)
        tree->through = tree->routes->through;
    settle(tree, node->place);
    return 0;
}

/* The agent above says that it does not pass on any more. */
static int take_dropped(struct tree *tree, const struct node_link *node, uint32_t below)
{
    if (below >= (uint32_t)tree->size ||
        tree_parent(&tree->routes->shape, (int)below) != node->place)
        return -1;
    if (tree->job->state < JOB_CLOSING && node_link_alive(node_at(tree, (int)below)))
        give_up_late(tree, (int)below);
    return 0;
}

static int take_left(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = tree_with(job, node);
    const Hvdrun__TreeLeft *message = frame->message;
    if (tree != NULL && message->below != 0)
        return take_dropped(tree, node, message->below);
    int present = tree == NULL ? -1 : is_of_last_order(tree, node, message->number);
    if (present <= 0 || job->state >= JOB_CLOSING)
        return present < 0 ? -1 : 0;
    if (message->why[0] != '\0' && !tree->places[node->place].was_late) /* else it is known */
        say_why(tree, node, "not below another agent", message->why);
    give_up(tree, node->place, false);
    settle(tree, node->place);
    return 0;
}

/* Those that nobody is below, and that are below the driver, need not know of the tree. */
static void send_orders(struct tree *tree)
{
    for (int i = 0; i < tree->size; i++) {
        if (tree_children(&tree->routes->shape, i) > 0 && tree->places[i].address[0] != '\0') {
            send_open(tree, i);
        } else {
            if (tree_children(&tree->routes->shape, i) > 0)
                say_why(tree, node_at(tree, i), alone, "it has no address that others reach");
            each_child(tree, i, settle);
        }
        if (tree_parent(&tree->routes->shape, i) == TREE_ROOT)
            settle(tree, i);
    }
}

/* Ticks after which what others were to bring is late, however large it is: a rank that waits for
 * it must not look as if it hung. */
static int64_t limit_of(const struct job *job)
{
    int64_t hang_ms = job->settings->hang_timeout;
    return hang_ms > 0 ? hang_ms / 4 / TREE_TICK_MS : INT64_MAX;
}

static void begin(void *context)
{
    struct tree *tree = context;
    struct job *job = tree->job;
    int size = job->plan->node_count;
    struct error err = ERROR_INIT;
    if (tree->places != NULL || job->state >= JOB_ENDING || size < job->settings->tree_from ||
        getrandom(tree->key, sizeof(tree->key), GRND_NONBLOCK) != (ssize_t)sizeof(tree->key))
        return;
    tree->size = size;
    tree->places = mem_array((size_t)size, sizeof(*tree->places));
    if (fill_addresses(tree, &err) < 0) {
        log_info(&job->log, "no agent is below another: %s", err.text);
        return;
    }
    tree->routes = tree_routes_create(size);
    tree_sender_open(&tree->sender, tree->routes, limit_of(job));
    for (int i = 0; i < size; i++)
        node_at(tree, i)->detour = &tree->detour;
    send_orders(tree);
}

static void ready(struct job *job, const struct node_link *node, const Hvdrun__Ready *message)
{
    struct tree *tree = job_part(job, tree);
    (void)node;
    if (tree != NULL)
        tree->needed |= message->needs_mpi;
}

/* START goes to all before. */
static void start_follows(const struct job *job, Hvdrun__Start *message)
{
    const struct tree *tree = job_part(job, tree);
    (void)message;
    if (tree != NULL && tree->needed)
        loop_timer_set(tree->begin, 0);
}

/* A rank of a program of which nobody knew that it would has taken a step with others. */
static void steps_begin(struct job *job)
{
    const struct tree *tree = job_part(job, tree);
    if (tree != NULL)
        loop_timer_set(tree->begin, 0);
}

/* Part */

static int open_part(struct job *job, struct error *err)
{
    const struct settings *settings = job->settings;
    bool short_hang = settings->hang_timeout > 0 && settings->hang_timeout < TREE_HANG_LEAST_MS;
    (void)err;
    if (job->kind->many_epochs || !job->kind->has_workers || settings->tree_from <= 0 || short_hang)
        return 0;
    struct tree *tree = mem_alloc(sizeof(*tree));
    *tree = (struct tree){.job = job,
                          .detour = {take_shared, takes, tree},
                          .sender = {.job = job, .late = late, .context = tree}};
    tree->begin = loop_timer_create(job->loop, begin, tree);
    job->own[PART_tree] = tree;
    return 0;
}

static void close_part(struct job *job)
{
    struct tree *tree = job_part(job, tree);
    for (int i = 0; i < job->node_count; i++)
        job->nodes[i]->detour = NULL;
    loop_timer_destroy(tree->begin);
    tree_sender_close(&tree->sender);
    tree_routes_destroy(tree->routes);
    for (int i = 0; i < tree->size; i++)
        free(tree->places[i].address);
    explicit_bzero(tree->key, sizeof(tree->key));
    free(tree->places);
    free(tree);
}

static void node_event(struct job *job, struct node_link *node, const char *event, const char *text)
{
    struct tree *tree = tree_with(job, node);
    (void)text;
    if (tree == NULL || job->state >= JOB_CLOSING)
        return;
    if (strcmp(event, "node_suspect") == 0) {
        each_child(tree, node->place, give_up_silent);
    } else if (strcmp(event, "node_heard") == 0) {
        outbox_heard(tree->sender.outbox, node->place);
        each_child(tree, node->place, try_again); /* direct while it was silent */
    }
}

static void node_lost(struct job *job, struct node_link *node)
{
    struct tree *tree = tree_with(job, node);
    if (tree == NULL)
        return;
    outbox_forget(tree->sender.outbox, node->place);
    if (job->state >= JOB_CLOSING)
        return;
    give_up(tree, node->place, false);
    each_child(tree, node->place, give_up_silent);
    try_ways_again(tree, tree_parent(&tree->routes->shape, node->place));
    settle(tree, node->place);
    each_child(tree, node->place, settle);
}

static void report(const struct job *job, struct json_t *root)
{
    const struct tree *tree = job_part(job, tree);
    if (tree == NULL || tree->routes == NULL)
        return;
    const struct outbox_counts *counts = outbox_counts(tree->sender.outbox);
    json_object_set_new(root, "tree",
                        json_pack("{s:i,s:i,s:i,s:I,s:I}", "hosts", tree->size, "through_others",
                                  tree->through, "returned", tree->returned, "frames",
                                  (json_int_t)counts->passed, "again",
                                  (json_int_t)counts->repeated));
}

static const struct part_frame frames[] = {
    {FRAME_TREE_OPENED, {take_opened, &hvdrun__tree_opened__descriptor, EPOCHS_ALL, NODE_UP, true}},
    {FRAME_TREE_JOINED, {take_joined, &hvdrun__tree_joined__descriptor, EPOCHS_ALL, NODE_UP, true}},
    {FRAME_TREE_LEFT, {take_left, &hvdrun__tree_left__descriptor, EPOCHS_ALL, NODE_UP, true}},
    {FRAME_TREE_TAKEN, {take_taken, &hvdrun__tree_taken__descriptor, EPOCHS_ALL, NODE_UP, true}},
    {0}};
const struct driver_part tree_part = {.name = "tree",
                                      .open = open_part,
                                      .close = close_part,
                                      .frames = frames,
                                      .ready = ready,
                                      .start = start_follows,
                                      .steps_begin = steps_begin,
                                      .node_event = node_event,
                                      .node_lost = node_lost,
                                      .report = report};
