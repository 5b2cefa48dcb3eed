/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of the tree. In a static job of many hosts, agents connect to each other, and results of
 * MPI's fences go through a few of them to all. All else stays on the links between driver and
 * agents, which also carry what does not arrive through others.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "features/tree/parcels.h"
#include "features/tree/routes.h"
#include "features/tree/tree_frames.h"
#include "io/send_queue.h"
#include "io/tls_module.h"
#include "model/net/network.h"

const char tree_feature[] = "results of MPI fences go through other agents (--tree-from)";

struct sent {
    struct parcel parcel; /* the first member: parcels.h */
    enum frame_type type;
    uint32_t epoch;
    struct buf head;            /* the body, as far as it is this node's own */
    struct shared_block *block; /* the rest; NULL: none */
};

struct place {
    bool began; /* what it gets are parcels */
    struct parcels_out out;
    char *address; /* where others reach this host */
    uint32_t port; /* 0: its agent does not wait for others */
};

/* What ends with the same block, and leaves together at the end of the loop's turn. */
struct cast {
    struct cast *next;
    struct shared_block *block;
    Hvdrun__TreeEntry **entries;
    size_t count, room;
};

struct tree {
    struct job *job;
    struct node_detour detour;
    struct tree_routes *routes; /* NULL: not begun */
    struct place *places;
    int size, began, through, returned; /* agents; below others at most; of them back again */
    int64_t passed, again;              /* parcels that others were to pass on; sent again */
    uint8_t key[TLS_KEY_SIZE];
    struct cast *first, **last;
    struct loop_timer *flush, *tick;
    int64_t now; /* ticks */
};

static void free_sent(struct parcel *parcel)
{
    struct sent *sent = (struct sent *)parcel;
    buf_destroy(&sent->head);
    shared_block_release(sent->block);
    free(sent);
}

static struct node_link *node_at(const struct tree *tree, int place)
{
    return tree->job->places[place];
}

/* Down */

static void cast_free(struct cast *cast)
{
    for (size_t i = 0; i < cast->count; i++)
        hvdrun__tree_entry__free_unpacked(cast->entries[i], NULL);
    shared_block_release(cast->block);
    free(cast->entries);
    free(cast);
}

/* Those of the same hop as entry number `from`, which are no more in the cast then. */
static void send_to_hop(struct tree *tree, struct cast *cast, int *hops, size_t from)
{
    Hvdrun__TreeEntry **entries AUTO_FREE = mem_array(cast->count, sizeof(*entries));
    Hvdrun__TreeDown message = HVDRUN__TREE_DOWN__INIT;
    int hop = hops[from];
    message.entries = entries;
    for (size_t i = from; i < cast->count; i++) {
        if (hops[i] != hop)
            continue;
        entries[message.n_entries++] = cast->entries[i];
        hops[i] = TREE_ROOT;
        if ((int)cast->entries[i]->place == hop)
            parcels_out_went_direct(&tree->places[hop].out, cast->entries[i]->serial);
        else
            tree->passed++;
    }
    node_link_send_pieces(node_at(tree, hop), FRAME_TREE_DOWN, 0, &message.base, TREE_DOWN_BLOCK,
                          cast->block);
}

static void send_cast(struct tree *tree, struct cast *cast)
{
    int *hops AUTO_FREE = mem_array(cast->count, sizeof(*hops));
    for (size_t i = 0; i < cast->count; i++)
        hops[i] = tree_routes_hop(tree->routes, (int)cast->entries[i]->place);
    for (size_t i = 0; i < cast->count; i++) {
        if (hops[i] != TREE_ROOT)
            send_to_hop(tree, cast, hops, i);
    }
}

static struct cast *take_first(struct tree *tree)
{
    struct cast *cast = tree->first;
    tree->first = cast->next;
    if (tree->first == NULL)
        tree->last = &tree->first;
    return cast;
}

static void send_casts(void *context)
{
    struct tree *tree = context;
    while (tree->first != NULL) {
        struct cast *cast = take_first(tree);
        send_cast(tree, cast);
        cast_free(cast);
    }
}

/* Behind all that is to be sent. Takes the entry. */
static void add_to_cast(struct tree *tree, struct shared_block *block, Hvdrun__TreeEntry *entry)
{
    struct cast *cast = tree->first;
    while (cast != NULL && cast->next != NULL)
        cast = cast->next;
    if (cast == NULL || cast->block != block) {
        cast = mem_alloc(sizeof(*cast));
        cast->block = shared_block_hold(block);
        *tree->last = cast;
        tree->last = &cast->next;
    }
    cast->entries = mem_one_more(cast->entries, cast->count, &cast->room, sizeof(*cast->entries));
    cast->entries[cast->count++] = entry;
    loop_timer_set(tree->flush, 0);
}

static Hvdrun__TreeEntry *entry_of(int place, const struct sent *sent)
{
    Hvdrun__TreeEntry *entry = mem_alloc(sizeof(*entry));
    *entry = (Hvdrun__TreeEntry)HVDRUN__TREE_ENTRY__INIT;
    entry->place = (uint32_t)place;
    entry->serial = sent->parcel.serial;
    entry->type = (uint32_t)sent->type;
    entry->epoch = sent->epoch;
    entry->body.len = sent->head.length;
    entry->body.data = mem_dup(buf_text(&sent->head), sent->head.length);
    return entry;
}

static void tick_later(const struct tree *tree)
{
    if (!loop_timer_is_set(tree->tick))
        loop_timer_set(tree->tick, TREE_TICK_MS);
}

static void keep(struct tree *tree, int place, struct sent *sent)
{
    sent->parcel.bytes =
        sizeof(*sent) + sent->head.length + (sent->block == NULL ? 0 : sent->block->length);
    parcels_out_add(&tree->places[place].out, &sent->parcel, tree->now);
    tick_later(tree);
}

/* The detour of the nodes. */
static bool take_shared(void *context, struct node_link *node, enum frame_type type, uint32_t epoch,
                        const ProtobufCMessage *message, unsigned field, struct shared_block *block)
{
    struct tree *tree = context;
    if (!tree_takes(type) || node->place < 0 || !tree->places[node->place].began)
        return false;
    struct sent *sent = mem_alloc(sizeof(*sent));
    sent->type = type;
    sent->epoch = epoch;
    sent->block = shared_block_hold(block);
    sent->head = message_head(message, field, block->length);
    keep(tree, node->place, sent);
    add_to_cast(tree, block, entry_of(node->place, sent));
    return true;
}

static void send_again(struct tree *tree, int place)
{
    const struct parcel *parcel = parcels_out_again(&tree->places[place].out, tree->now);
    for (; parcel != NULL; parcel = parcel->next) {
        const struct sent *sent = (const struct sent *)parcel;
        add_to_cast(tree, sent->block, entry_of(place, sent));
        tree->again++;
    }
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
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    if (!tree_routes_give_up(tree->routes, place))
        return;
    tree->returned++;
    log_debug(&tree->job->log, "%s: not through another agent any more",
              node_at(tree, place)->host);
    if (say)
        say_left(node_at(tree, place));
    for (int i = place; i < tree->size; i++) {
        if (tree_toward(shape, place, i) >= 0)
            send_again(tree, i);
    }
}

static void give_up_children(struct tree *tree, int place)
{
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    int first = tree_first_child(shape, place);
    for (int i = 0; i < tree_children(shape, place); i++)
        give_up(tree, first + i, true);
}

static bool is_late(void *context, int place)
{
    const struct tree *tree = context;
    return parcels_out_is_late(&tree->places[place].out, tree->now);
}

static void check_late(struct tree *tree, int place)
{
    int blamed = tree_routes_blame(tree->routes, place, is_late, tree);
    if (blamed >= 0)
        give_up(tree, blamed, true);
}

/* A silent link is judged by its node's liveness: what went through others may have come. */
static void tick(void *context)
{
    struct tree *tree = context;
    bool more = false;
    tree->now++;
    for (int i = 0; i < tree->size; i++) {
        const struct node_link *node = node_at(tree, i);
        if (!node_link_alive(node))
            continue;
        if (is_late(tree, i) && !node->suspect && tree->job->state < JOB_ENDING)
            check_late(tree, i);
        more |= tree->places[i].out.first != NULL;
    }
    if (more)
        tick_later(tree);
}

/* What agents say */

static void connect(struct tree *tree, struct node_link *node)
{
    if (!tree_routes_connect(tree->routes, node->place))
        say_left(node);
    if (tree_routes_through(tree->routes) > tree->through)
        tree->through = tree_routes_through(tree->routes);
}

/* The first parcel goes on its own link, behind all that went there before: so nothing that
 * follows can be taken before these. */
static void begin(struct tree *tree, struct node_link *node)
{
    struct place *place = &tree->places[node->place];
    struct shared_block *nothing = shared_block_create(0);
    struct sent *sent = mem_alloc(sizeof(*sent));
    sent->type = FRAME_TREE_BEGIN;
    sent->block = nothing;
    keep(tree, node->place, sent);
    Hvdrun__TreeEntry *entry = entry_of(node->place, sent);
    Hvdrun__TreeDown message = HVDRUN__TREE_DOWN__INIT;
    message.entries = &entry;
    message.n_entries = 1;
    node_link_send(node, FRAME_TREE_DOWN, 0, &message.base);
    hvdrun__tree_entry__free_unpacked(entry, NULL);
    parcels_out_went_direct(&place->out, sent->parcel.serial);
    place->began = true;
}

static int take_taken(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = job_part(job, tree);
    const Hvdrun__TreeTaken *message = frame->message;
    if (tree == NULL || tree->routes == NULL)
        return -1;
    return parcels_out_confirm(&tree->places[node->place].out, message->serial);
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
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    Hvdrun__TreeOpen message = HVDRUN__TREE_OPEN__INIT;
    message.place = (uint32_t)place;
    message.size = (uint32_t)shape->size;
    message.radix = (uint32_t)shape->radix;
    message.key = (ProtobufCBinaryData){sizeof(tree->key), tree->key};
    message.address = tree->places[place].address;
    node_link_send(node_at(tree, place), FRAME_TREE_OPEN, 0, &message.base);
}

static void send_join(struct tree *tree, int place)
{
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    int parent = tree_parent(shape, place);
    Hvdrun__TreeJoin message = HVDRUN__TREE_JOIN__INIT;
    message.place = (uint32_t)place;
    message.size = (uint32_t)shape->size;
    message.radix = (uint32_t)shape->radix;
    message.key = (ProtobufCBinaryData){sizeof(tree->key), tree->key};
    const struct place *above = parent == TREE_ROOT ? NULL : &tree->places[parent];
    if (above != NULL) {
        message.address = above->address;
        message.port = above->port;
    }
    node_link_send(node_at(tree, place), FRAME_TREE_JOIN, 0, &message.base);
}

static int take_opened(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = job_part(job, tree);
    const Hvdrun__TreeOpened *message = frame->message;
    if (tree == NULL || tree->routes == NULL || tree->places[node->place].port != 0)
        return -1;
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    if (message->problem[0] != '\0') {
        log_info(&job->log, "%s: no other agent is below it, and %d get all on their own links: %s",
                 node->host, tree_children(shape, node->place), message->problem);
        return 0;
    }
    if (message->port == 0)
        return -1;
    tree->places[node->place].port = message->port;
    for (int i = 0; i < tree_children(shape, node->place); i++)
        send_join(tree, tree_first_child(shape, node->place) + i);
    return 0;
}

static int take_joined(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = job_part(job, tree);
    (void)frame;
    if (tree == NULL || tree->routes == NULL)
        return -1;
    if (tree->places[node->place].began) {
        connect(tree, node);
        return 0;
    }
    begin(tree, node);
    connect(tree, node);
    if (++tree->began == tree->size)
        log_info(&tree->job->log, "%d of %d agents are below others", tree->through, tree->size);
    return 0;
}

static int take_left(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct tree *tree = job_part(job, tree);
    const Hvdrun__TreeLeft *message = frame->message;
    if (tree == NULL || tree->routes == NULL)
        return -1;
    if (job->state >= JOB_ENDING)
        return 0;
    if (message->why[0] != '\0')
        log_info(&job->log, "%s: not below another agent: %s", node->host, message->why);
    give_up(tree, node->place, false);
    return 0;
}

static void send_orders(struct tree *tree)
{
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    for (int i = 0; i < tree->size; i++) {
        if (tree_children(shape, i) > 0)
            send_open(tree, i);
        if (tree_parent(shape, i) == TREE_ROOT)
            send_join(tree, i);
    }
}

static void start(struct tree *tree)
{
    const struct job *job = tree->job;
    int size = job->plan->node_count;
    struct error err = ERROR_INIT;
    if (job->state >= JOB_ENDING || size < job->settings->tree_from ||
        getrandom(tree->key, sizeof(tree->key), GRND_NONBLOCK) != (ssize_t)sizeof(tree->key))
        return;
    tree->size = size;
    tree->places = mem_array((size_t)size, sizeof(*tree->places));
    for (int i = 0; i < size; i++)
        parcels_out_init(&tree->places[i].out, TREE_PATIENCE, free_sent);
    if (fill_addresses(tree, &err) < 0) {
        log_info(&job->log, "no agent is below another: %s", err.text);
        return;
    }
    tree->routes = tree_routes_create(size);
    for (int i = 0; i < size; i++)
        node_at(tree, i)->detour = &tree->detour;
    send_orders(tree);
}

/* Part */

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (job->kind->many_epochs || !job->kind->has_workers || job->settings->tree_from <= 0)
        return 0;
    struct tree *tree = mem_alloc(sizeof(*tree));
    *tree = (struct tree){.job = job, .detour = {take_shared, tree}};
    tree->last = &tree->first;
    tree->flush = loop_timer_create(job->loop, send_casts, tree);
    tree->tick = loop_timer_create(job->loop, tick, tree);
    job->own[PART_tree] = tree;
    return 0;
}

static void close_part(struct job *job)
{
    struct tree *tree = job_part(job, tree);
    for (int i = 0; i < tree->size; i++) {
        parcels_out_clear(&tree->places[i].out);
        free(tree->places[i].address);
    }
    while (tree->first != NULL)
        cast_free(take_first(tree));
    for (int i = 0; i < job->node_count; i++)
        job->nodes[i]->detour = NULL;
    loop_timer_destroy(tree->flush);
    loop_timer_destroy(tree->tick);
    tree_routes_destroy(tree->routes);
    explicit_bzero(tree->key, sizeof(tree->key));
    free(tree->places);
    free(tree);
}

/* All agents are up, and have their places. The tree begins in front of PREPARE, so that it stands
 * when ranks exchange data at their start. */
static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    struct tree *tree = job_part(job, tree);
    (void)message;
    if (tree != NULL && tree->places == NULL)
        start(tree);
}

/* Those below it, which were direct while it was silent. */
static void join_again(struct tree *tree, int place)
{
    const struct tree_shape *shape = tree_routes_shape(tree->routes);
    int first = tree_first_child(shape, place);
    for (int i = 0; i < tree_children(shape, place); i++) {
        if (tree_routes_renew(tree->routes, first + i))
            send_join(tree, first + i);
    }
}

static void node_event(struct job *job, struct node_link *node, const char *event, const char *text)
{
    struct tree *tree = job_part(job, tree);
    (void)text;
    if (tree == NULL || tree->routes == NULL || node->place < 0 || job->state >= JOB_ENDING)
        return;
    if (strcmp(event, "node_suspect") == 0)
        give_up_children(tree, node->place);
    else if (strcmp(event, "node_heard") == 0)
        join_again(tree, node->place);
}

static void node_lost(struct job *job, struct node_link *node)
{
    struct tree *tree = job_part(job, tree);
    if (tree == NULL || tree->routes == NULL || node->place < 0 || job->state >= JOB_ENDING)
        return;
    give_up(tree, node->place, false);
    give_up_children(tree, node->place);
    parcels_out_clear(&tree->places[node->place].out);
}

static void report(const struct job *job, struct json_t *root)
{
    const struct tree *tree = job_part(job, tree);
    if (tree == NULL || tree->routes == NULL)
        return;
    json_object_set_new(root, "tree",
                        json_pack("{s:i,s:i,s:i,s:I,s:I}", "hosts", tree->size, "through_others",
                                  tree->through, "returned", tree->returned, "frames",
                                  (json_int_t)tree->passed, "again", (json_int_t)tree->again));
}

#define FRAME(type, take, name)                                            \
    {                                                                      \
        type,                                                              \
        {                                                                  \
            take, &hvdrun__##name##__descriptor, EPOCHS_ALL, NODE_UP, true \
        }                                                                  \
    }
static const struct part_frame frames[] = {
    FRAME(FRAME_TREE_OPENED, take_opened, tree_opened),
    {FRAME_TREE_JOINED, {take_joined, NULL, EPOCHS_ALL, NODE_UP, true}},
    FRAME(FRAME_TREE_LEFT, take_left, tree_left),
    FRAME(FRAME_TREE_TAKEN, take_taken, tree_taken),
    {0}};
const struct driver_part tree_part = {.name = "tree",
                                      .open = open_part,
                                      .close = close_part,
                                      .frames = frames,
                                      .prepare = prepare,
                                      .node_event = node_event,
                                      .node_lost = node_lost,
                                      .report = report};
