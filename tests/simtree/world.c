/* SPDX-License-Identifier: Apache-2.0 */
#include "simtree/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "features/tree/outbox.h"
#include "features/tree/tree_frames.h"
#include "io/link.h"
#include "sim/rng.h"
#include "simtree/network.h"

#define MIB ((size_t)1 << 20)

enum {
    DRIVER = -1,
    TICK_MS = TREE_TICK_MS,
    SUSPECT_MS = 5000,
    FAULTS_UNTIL_MS = 20000,
    STOPPED_MAX_MS = 12000,
    LIMIT_MS = 60000, /* after the last fault */
};

struct sent {
    struct parcel parcel;
    struct entry entry;
    bool went;
};

/* On a link of the driver, pieces of results go one after the other; all else overtakes them. */
enum wire { LINK_UP, LINK_DOWN, LINK_PIECES, TREE_UP, TREE_DOWN, WIRES };
enum way { WAY_NONE, WAY_UP, WAY_SWALLOWS, WAY_ENDED };

struct agent {
    uint64_t said, heard;   /* the last number */
    uint64_t taken;         /* its own, from here on */
    int told, order;        /* the number of the last JOIN: the driver's, and its own */
    bool knows;             /* the driver's: all that it gets are parcels */
    bool suspect, may_join; /* the driver's: it is silent; the one above it was */
    bool dead, joined, dropped;
    enum way way; /* to the agent above */
    int64_t stopped_until, last[WIRES];
    size_t queued[WIRES]; /* bytes that have not come */
};

struct world {
    struct rng rng;
    enum lie lie;
    bool quick; /* only the driver stands still */
    bool burst; /* more results than any queue takes */
    bool lossy; /* connections between agents lose all, and all else is quick and well */
    int64_t hang_ms, bytes_a_ms;
    struct network network;
    int64_t now;
    int size;
    struct agent *agents;
    struct tree_routes *routes;
    struct outbox *outbox;
    uint64_t blocks;
    bool begun, ticking; /* the driver */
    int64_t ticked_ms, stopped_until;
    struct outcome outcome;
};

static void wrong(struct world *world, const char *problem)
{
    if (world->outcome.problem == NULL)
        world->outcome.problem = problem;
}

static void free_sent(struct parcel *parcel)
{
    free((struct sent *)parcel);
}

static const struct tree_shape *shape_of(const struct world *world)
{
    return &world->routes->shape;
}

/* The network */

static int64_t delay(struct world *world)
{
    bool slow = !world->quick && !world->lossy && rng_below(&world->rng, 20) == 0;
    return rng_between(&world->rng, 1, slow ? 3000 : 40);
}

static enum wire wire_of(const struct message *message, int child)
{
    bool up = message->from == child;
    if (!message->direct)
        return up ? TREE_UP : TREE_DOWN;
    if (up)
        return LINK_UP;
    return message->kind == FRAMES || message->kind == JOIN ? LINK_PIECES : LINK_DOWN;
}

/* On the wire of `child`: to or from the driver, or the agent above it. */
static void put_on(struct world *world, struct message *message, int child, enum wire wire)
{
    struct agent *agent = &world->agents[child];
    int64_t at = world->now + delay(world), last = agent->last[wire];
    if (wire == LINK_PIECES && agent->last[LINK_DOWN] > last)
        last = agent->last[LINK_DOWN]; /* they overtake nothing */
    at = at > last ? at : last;
    agent->last[wire] = message->at = at + (int64_t)message->bytes / world->bytes_a_ms;
    agent->queued[wire] += message->bytes;
    if (wire == LINK_PIECES && agent->queued[wire] > LINK_QUEUE_MAX && agent->knows)
        wrong(world, "a link of the driver breaks: its queue is full");
    network_add(&world->network, message);
}

static void put(struct world *world, struct message *message, int child)
{
    put_on(world, message, child, wire_of(message, child));
}

static void come(struct world *world, const struct message *message)
{
    if (message->bytes > 0)
        world->agents[message->to].queued[wire_of(message, message->to)] -= message->bytes;
}

static void send_direct(struct world *world, int from, int to, enum kind kind,
                        const struct entry *entry)
{
    struct message message = {.kind = kind, .from = from, .to = to, .direct = true};
    if (kind == LEFT && from == DRIVER && !tree_routes_is_direct(world->routes, to))
        wrong(world, "an agent is to end a connection that the driver uses");
    if (to == DRIVER && (kind == JOINED || kind == LEFT))
        message.number = world->agents[from].order;
    if (entry != NULL) {
        message.count = 1;
        message.bytes = entry->bytes;
        message.entries = mem_dup(entry, sizeof(*entry));
    }
    put(world, &message, from == DRIVER ? to : from);
}

static void send_join(struct world *world, int place)
{
    struct agent *agent = &world->agents[place];
    struct message message = {.kind = JOIN, .from = DRIVER, .to = place, .direct = true};
    message.number = ++agent->told;
    agent->knows = true;
    agent->may_join = false;
    put_on(world, &message, place, world->lie == LIE_JOIN_OVERTAKES ? LINK_DOWN : LINK_PIECES);
}

static void at(struct world *world, int64_t when, enum kind kind, int whom)
{
    const struct message message = {.at = when, .kind = kind, .from = whom, .to = whom};
    network_add(&world->network, &message);
}

static void at_driver(struct world *world, int64_t when, enum kind kind, int about)
{
    const struct message message = {.at = when, .kind = kind, .from = about, .to = DRIVER};
    network_add(&world->network, &message);
}

/* The driver */

static bool takes(void *context, int place, size_t bytes)
{
    const struct world *world = context;
    const struct agent *agent = &world->agents[place];
    return !agent->dead &&
           (world->lie == LIE_NO_PACE || agent->queued[LINK_PIECES] + bytes <= LINK_QUEUE_MAX / 2);
}

static void ready(void *context)
{
    (void)context; /* each turn ends with outbox_flush() */
}

static void send_parcels(void *context, int hop, struct parcel *const *parcels, size_t count)
{
    struct world *world = context;
    struct message message = {.kind = FRAMES, .from = DRIVER, .to = hop, .direct = true};
    message.entries = mem_array(count, sizeof(*message.entries));
    for (size_t i = 0; i < count; i++) {
        struct sent *sent = (struct sent *)parcels[i];
        if (sent->went && world->lie == LIE_NO_REPEAT)
            continue;
        sent->went = true;
        sent->entry.serial = sent->parcel.serial;
        message.bytes = sent->entry.bytes;
        message.entries[message.count++] = sent->entry;
    }
    put(world, &message, hop);
}

static void keep(struct world *world, const struct entry *plain, bool own_link)
{
    struct sent *sent = mem_alloc(sizeof(*sent));
    *sent = (struct sent){.entry = *plain};
    sent->parcel.block = (const void *)(uintptr_t)plain->block; /* a name only */
    sent->parcel.bytes = sent->parcel.block_bytes = plain->bytes;
    sent->parcel.own_link = own_link;
    outbox_add(world->outbox, plain->place, &sent->parcel);
    if (world->lie == LIE_BELIEVES_SENT)
        outbox_confirm(world->outbox, plain->place, sent->parcel.serial);
}

static void tick_later(struct world *world)
{
    if (world->ticking)
        return;
    world->ticking = true;
    world->ticked_ms = world->now;
    at(world, world->now + TICK_MS, TICK, DRIVER);
}

static void give_up(struct world *world, int place, bool say)
{
    if (world->lie == LIE_KEEPS_WAY || !tree_routes_give_up(world->routes, place))
        return;
    world->outcome.given_up++;
    if (world->quick)
        wrong(world, "a way is given up, though all agents go on");
    if (say)
        send_direct(world, DRIVER, place, LEFT, NULL);
    for (int i = place; i < world->size; i++) {
        if (tree_toward(shape_of(world), place, i) >= 0)
            outbox_return(world->outbox, i);
    }
}

static void give_up_children(struct world *world, int place)
{
    int first = tree_first_child(shape_of(world), place);
    for (int i = 0; i < tree_children(shape_of(world), place); i++) {
        give_up(world, first + i, true);
        world->agents[first + i].may_join = true;
    }
    world->agents[place].suspect = true; /* or lost */
}

static bool is_late(void *context, int place)
{
    const struct world *world = context;
    return outbox_is_late(world->outbox, place);
}

static void late(void *context, int place)
{
    struct world *world = context;
    int blamed = tree_routes_blame(world->routes, place, is_late, world);
    if (blamed >= 0 && world->agents[blamed].dropped && world->agents[blamed].way == WAY_UP)
        wrong(world, "what a full queue has dropped is noticed because it is late");
    if (blamed >= 0 && !world->agents[place].dead && !outbox_on_own_link(world->outbox, place))
        give_up(world, blamed, true);
}

/* Nothing but confirmations is on the way up. */
static int64_t behind(void *context, int place)
{
    (void)context, (void)place;
    return 0;
}

static void driver_hears_drop(struct world *world, int place)
{
    if (!world->agents[place].dead)
        give_up(world, place, true);
}

static void driver_tick(struct world *world)
{
    int64_t missed = (world->now - world->ticked_ms) / TICK_MS - 1;
    bool more = outbox_tick(world->outbox);
    for (int64_t i = 0; i < missed && world->lie == LIE_COUNTS_PAUSES; i++)
        outbox_tick(world->outbox);
    world->ticking = false;
    if (more)
        tick_later(world);
}

static bool is_old(const struct world *world, const struct message *message)
{
    return message->number != world->agents[message->from].told && world->lie != LIE_BELIEVES_OLD;
}

static void driver_connects(struct world *world, int place)
{
    bool known = world->lie != LIE_BELIEVES_OLD && !tree_routes_is_direct(world->routes, place);
    if (!known && !tree_routes_connect(world->routes, place))
        send_direct(world, DRIVER, place, LEFT, NULL);
}

/* As try_again() in tree_driver.c for an agent whose parent was silent. Nobody before the tree
 * begins: the order then would end what an earlier one has connected. And not before all below it
 * have what was sent: the agent above may still pass on some of that. */
static void join_again(struct world *world, int place)
{
    int above = tree_parent(shape_of(world), place);
    if (!world->begun || !world->agents[place].may_join || world->agents[above].suspect ||
        outbox_owes_below(world->outbox, place) || !tree_routes_renew(world->routes, place))
        return;
    send_join(world, place);
}

static void join_ways_again(struct world *world, int place)
{
    for (; place != TREE_ROOT; place = tree_parent(shape_of(world), place))
        join_again(world, place);
}

static void driver_hears(struct world *world, int place)
{
    int first = tree_first_child(shape_of(world), place);
    outbox_heard(world->outbox, place);
    world->agents[place].suspect = world->agents[place].dead;
    for (int i = 0; i < tree_children(shape_of(world), place); i++)
        join_again(world, first + i);
}

/* An agent */

static void hear(struct world *world, struct agent *agent, const struct entry *entry)
{
    int64_t waited = world->now - entry->said_ms;
    if (waited > world->outcome.longest_ms)
        world->outcome.longest_ms = waited;
    if (world->lossy && waited > world->hang_ms / 2)
        wrong(world, "ranks wait for so long that they look as if they hung");
    world->outcome.frames++;
    if (entry->number <= agent->heard)
        wrong(world, "a frame came twice");
    else if (entry->number > agent->heard + 1)
        wrong(world, "a frame has overtaken another one");
    agent->heard = entry->number;
}

static void agent_takes(struct world *world, int place, const struct entry *entry)
{
    struct agent *agent = &world->agents[place];
    struct entry taken = {.place = place};
    if (entry->serial == 0) {
        hear(world, agent, entry);
        return;
    }
    enum parcel_turn turn = parcel_turn(&agent->taken, entry->serial);
    if (turn == PARCEL_EARLY)
        wrong(world, "one is missing on the way");
    if (turn == PARCEL_NEXT || (turn == PARCEL_KNOWN && world->lie == LIE_TAKES_TWICE))
        hear(world, agent, entry);
    if (turn == PARCEL_NEXT && world->lie == LIE_CONFIRMS_ALL)
        agent->taken++;
    else if (turn != PARCEL_NEXT)
        return;
    taken.serial = agent->taken;
    send_direct(world, place, DRIVER, TAKEN, &taken);
}

static void agent_leaves(struct world *world, int place)
{
    struct agent *agent = &world->agents[place];
    if (agent->way != WAY_NONE)
        agent->way = WAY_ENDED;
    agent->joined = false;
}

static void return_to_driver(struct world *world, int place)
{
    send_direct(world, place, DRIVER, LEFT, NULL);
    agent_leaves(world, place);
}

static void agent_joins(struct world *world, int place)
{
    int parent = tree_parent(shape_of(world), place);
    struct message hello = {.kind = HELLO, .from = place, .to = parent};
    int luck = world->quick ? 10 : rng_below(&world->rng, 10);
    if (luck == 0)
        return; /* nothing gets through */
    if (world->agents[parent].dead || luck == 1)
        return_to_driver(world, place);
    else
        put(world, &hello, place);
}

static void agent_lets_in(struct world *world, int place, int child)
{
    struct message joined = {.kind = JOINED, .from = place, .to = child};
    world->agents[child].way = WAY_UP;
    world->agents[child].dropped = false;
    put(world, &joined, child);
}

static void agent_has_joined(struct world *world, int place)
{
    struct agent *agent = &world->agents[place];
    if (agent->way == WAY_ENDED)
        return;
    agent->joined = true;
    send_direct(world, place, DRIVER, JOINED, NULL);
}

static void end_way(struct world *world, int child)
{
    struct agent *agent = &world->agents[child];
    if (agent->way != WAY_UP)
        return;
    agent->way = WAY_ENDED;
    at(world, world->now + delay(world), CLOSED, child);
}

static void agent_drops(struct world *world, int place, int child)
{
    struct message word = {.kind = DROPPED, .from = place, .to = DRIVER, .direct = true};
    word.number = child;
    world->agents[child].dropped = true;
    if (world->lie == LIE_DROPS_IN_SILENCE)
        return;
    end_way(world, child);
    put(world, &word, place);
}

/* From the driver or the agent above: others get theirs first. */
static void agent_passes_on(struct world *world, int place, const struct message *message)
{
    int first = tree_first_child(shape_of(world), place);
    for (int i = 0; i < tree_children(shape_of(world), place); i++) {
        struct message on = {.kind = FRAMES, .from = place, .to = first + i};
        on.entries = mem_array(message->count + 1, sizeof(*on.entries));
        for (size_t k = 0; k < message->count; k++) {
            if (tree_toward(shape_of(world), first + i, message->entries[k].place) >= 0)
                on.entries[on.count++] = message->entries[k];
        }
        const struct agent *child = &world->agents[first + i];
        world->outcome.through += on.count;
        on.bytes = message->bytes;
        bool goes = on.count > 0 && child->way == WAY_UP;
        if (goes && child->queued[TREE_DOWN] <= TREE_CHILD_QUEUE_MAX) {
            put(world, &on, first + i);
            continue;
        }
        free(on.entries);
        if (goes)
            agent_drops(world, place, first + i);
    }
    for (size_t k = 0; k < message->count; k++) {
        if (message->entries[k].place == place)
            agent_takes(world, place, &message->entries[k]);
    }
}

static void agent_event(struct world *world, int place, const struct message *message)
{
    switch (message->kind) {
    case FRAMES: agent_passes_on(world, place, message); break;
    case JOIN:
        agent_leaves(world, place);
        world->agents[place].order = message->number;
        agent_joins(world, place);
        break;
    case HELLO: agent_lets_in(world, place, message->from); break;
    case JOINED: agent_has_joined(world, place); break;
    case CLOSED:
        if (world->agents[place].joined)
            return_to_driver(world, place);
        break;
    case LEFT: agent_leaves(world, place); break;
    default: break;
    }
}

/* What happens from outside */

static void end_agent(struct world *world, int place)
{
    struct agent *agent = &world->agents[place];
    int first = tree_first_child(shape_of(world), place);
    if (agent->dead)
        return;
    agent->dead = true;
    world->outcome.ended++;
    agent->way = WAY_ENDED;
    for (int i = 0; i < tree_children(shape_of(world), place); i++)
        end_way(world, first + i);
    const struct message lost = {
        .kind = LOST, .from = place, .to = DRIVER, .direct = true, .count = 0};
    struct message copy = lost;
    put(world, &copy, place);
}

static void stop(struct world *world, int64_t *until, int64_t ms)
{
    if (*until < world->now + ms)
        *until = world->now + ms;
}

static void stop_agent(struct world *world, int place)
{
    struct agent *agent = &world->agents[place];
    int64_t ms = rng_between(&world->rng, 100, STOPPED_MAX_MS);
    stop(world, &agent->stopped_until, ms);
    if (ms <= SUSPECT_MS || agent->dead)
        return;
    give_up_children(world, place);
    at_driver(world, agent->stopped_until + delay(world), HEARD, place);
}

/* What it sends takes long: the driver takes it for silent. */
static void suspect_agent(struct world *world, int place)
{
    if (world->agents[place].dead)
        return;
    give_up_children(world, place);
    at_driver(world, world->now + delay(world), HEARD, place);
}

static void fault(struct world *world)
{
    int place = rng_below(&world->rng, world->size);
    struct agent *agent = &world->agents[place];
    switch (world->quick   ? 0
            : world->lossy ? 2 * (1 + rng_below(&world->rng, 2))
                           : rng_below(&world->rng, 6)) {
    case 0:
        stop(world, &world->stopped_until, rng_between(&world->rng, 100, STOPPED_MAX_MS));
        break;
    case 1: end_agent(world, place); break;
    case 2: end_way(world, place); break;
    case 3: suspect_agent(world, place); break;
    case 4:
        if (agent->way == WAY_UP)
            agent->way = WAY_SWALLOWS;
        break;
    default: stop_agent(world, place); break;
    }
}

static size_t some_bytes(struct world *world)
{
    switch (rng_below(&world->rng, world->burst ? 4 : 6)) {
    case 0: return (size_t)rng_between(&world->rng, 0, TREE_LEAST_BYTES);
    case 1: return (size_t)rng_between(&world->rng, 256, 1 << 16);
    case 5: return (size_t)rng_between(&world->rng, 256, FRAME_MPI_DATA_MAX);
    default: return (size_t)rng_between(&world->rng, 256, TREE_MOST_BYTES + MIB);
    }
}

/* To one agent. `own_link`: not by way of others. */
static void say(struct world *world, int place, uint64_t block, size_t bytes, bool own_link)
{
    struct agent *agent = &world->agents[place];
    const struct entry plain = {.place = place,
                                .number = ++agent->said,
                                .block = block,
                                .bytes = bytes,
                                .said_ms = world->now};
    if (agent->knows)
        keep(world, &plain, own_link);
    else
        send_direct(world, DRIVER, place, FRAMES, &plain);
}

static void say_result(struct world *world)
{
    bool all = rng_below(&world->rng, 2) == 0;
    size_t bytes = some_bytes(world);
    bool own_link = bytes < TREE_LEAST_BYTES || bytes > TREE_MOST_BYTES;
    world->blocks++;
    for (int i = 0; i < world->size; i++) {
        if (!world->agents[i].dead && (all || rng_below(&world->rng, 2) == 0))
            say(world, i, world->blocks, bytes, own_link);
    }
    tick_later(world);
}

/* To a question of one agent. */
static void say_answer(struct world *world)
{
    int place = rng_below(&world->rng, world->size);
    struct agent *agent = &world->agents[place];
    size_t bytes = some_bytes(world);
    bool knows = agent->knows;
    if (agent->dead || (knows ? outbox_waiting(world->outbox, place) + bytes > LINK_QUEUE_MAX
                              : !takes(world, place, bytes)))
        return;
    agent->knows = knows && world->lie != LIE_ANSWERS_APART;
    say(world, place, ++world->blocks, bytes, true);
    agent->knows = knows;
    tick_later(world);
}

static void confirm(struct world *world, const struct entry *taken)
{
    if (outbox_confirm(world->outbox, taken->place, taken->serial) < 0)
        wrong(world, "what was never sent is confirmed");
}

static void begin_tree(struct world *world)
{
    world->begun = true;
    for (int i = 0; i < world->size; i++) {
        world->agents[i].knows = tree_children(shape_of(world), i) > 0;
        if (tree_parent(shape_of(world), i) == TREE_ROOT)
            continue;
        tree_routes_renew(world->routes, i); /* one above it may have been silent before */
        send_join(world, i);
    }
}

static void driver_event(struct world *world, const struct message *message)
{
    switch (message->kind) {
    case TAKEN:
        confirm(world, &message->entries[0]);
        join_ways_again(world, message->from);
        break;
    case LEFT:
        if (is_old(world, message))
            break;
        give_up(world, message->from, false);
        break;
    case TICK: driver_tick(world); break;
    case FAULT: fault(world); break;
    case DROPPED: driver_hears_drop(world, message->number); break;
    case JOINED:
        if (is_old(world, message))
            break;
        driver_connects(world, message->from);
        break;
    case HEARD: driver_hears(world, message->from); break;
    case BEGIN: begin_tree(world); break;
    case SEND: say_result(world); break;
    case ANSWER: say_answer(world); break;
    case LOST:
        give_up(world, message->from, false);
        give_up_children(world, message->from);
        outbox_forget(world->outbox, message->from);
        join_ways_again(world, tree_parent(shape_of(world), message->from));
        break;
    default: break;
    }
    outbox_flush(world->outbox);
}

static void put_off(struct world *world, struct message *message, int64_t until)
{
    struct message later = *message;
    later.at = until;
    network_add(&world->network, &later);
    message->entries = NULL;
}

/* Faults come to a driver that stands still, too. */
static void happen(struct world *world, struct message *message)
{
    world->now = message->at;
    if (message->to == DRIVER) {
        if (message->kind != FAULT && world->stopped_until > world->now)
            put_off(world, message, world->stopped_until);
        else
            driver_event(world, message);
        return;
    }
    const struct agent *agent = &world->agents[message->to];
    bool through = message->kind == FRAMES && !message->direct;
    bool lost = agent->dead || (through && agent->way != WAY_UP);
    if (!lost && agent->stopped_until > world->now) {
        put_off(world, message, agent->stopped_until);
        return;
    }
    come(world, message);
    if (!lost)
        agent_event(world, message->to, message);
}

/* All that lives has all that was sent to it, and what it sent has come. */
static void check_end(struct world *world)
{
    for (int i = 0; i < world->size; i++) {
        const struct agent *agent = &world->agents[i];
        if (agent->dead)
            continue;
        if (agent->heard != agent->said)
            wrong(world, "a frame never came");
        if (outbox_owes(world->outbox, i))
            wrong(world, "a frame that came is not confirmed");
        if (!tree_routes_is_direct(world->routes, i) && agent->way != WAY_UP &&
            agent->way != WAY_SWALLOWS)
            wrong(world, "a way leads through a connection that is not there");
    }
}

static void begin(struct world *world)
{
    static const struct outbox_ops ops = {takes, ready, send_parcels, late, behind, free_sent};
    world->routes = tree_routes_create(world->size);
    world->agents = mem_array((size_t)world->size, sizeof(*world->agents));
    int faults = rng_below(&world->rng, 7), says = 2 + rng_below(&world->rng, 11);
    world->burst = rng_below(&world->rng, 8) == 0;
    bool limited = world->lossy || (!world->quick && rng_below(&world->rng, 2) == 0);
    int64_t limit =
        !limited || world->lie == LIE_NO_LIMIT ? INT64_MAX : world->hang_ms / 4 / TICK_MS;
    world->outbox = outbox_create(world->routes, limit, &ops, world);
    for (int i = 0; i < faults; i++)
        at(world, rng_between(&world->rng, 0, FAULTS_UNTIL_MS), FAULT, DRIVER);
    at(world, rng_between(&world->rng, 0, 100), BEGIN, DRIVER);
    for (int i = 0; i < 3; i++) /* before, and while agents connect */
        at(world, rng_between(&world->rng, 0, 200), SEND, DRIVER);
    for (int i = 0; i < says; i++)
        at(world, rng_between(&world->rng, 0, FAULTS_UNTIL_MS + 5000),
           rng_below(&world->rng, 3) == 0 ? ANSWER : SEND, DRIVER);
    int64_t when = rng_between(&world->rng, 1000, FAULTS_UNTIL_MS);
    for (int i = 0; i < 60 && world->burst && !world->lossy; i++)
        at(world, rng_between(&world->rng, when, when + 1000), SEND, DRIVER);
}

static void clear(struct world *world)
{
    network_clear(&world->network);
    world->outcome.again = (uint64_t)outbox_counts(world->outbox)->repeated;
    outbox_destroy(world->outbox);
    free(world->agents);
    tree_routes_destroy(world->routes);
}

struct outcome world_run(uint64_t seed, int agents, enum lie lie)
{
    struct world world = {
        .rng = rng_stream(seed, 1), .lie = lie, .quick = seed % 8 == 0, .lossy = seed % 8 == 1};
    struct message message;
    world.size = agents > 0 ? agents : (int)rng_between(&world.rng, 2, 60);
    world.outcome.agents = world.size;
    world.hang_ms = rng_between(&world.rng, TREE_HANG_LEAST_MS, 10 * TREE_HANG_LEAST_MS);
    world.bytes_a_ms =
        world.quick || world.lossy ? 1 << 20 : rng_between(&world.rng, 30000, 1 << 20);
    begin(&world);
    while (world.outcome.problem == NULL && network_take(&world.network, &message)) {
        happen(&world, &message);
        free(message.entries);
        if (world.now > FAULTS_UNTIL_MS + STOPPED_MAX_MS + LIMIT_MS)
            wrong(&world, "a frame does not come in time");
    }
    if (world.outcome.problem == NULL)
        check_end(&world);
    clear(&world);
    return world.outcome;
}
