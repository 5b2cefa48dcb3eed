/* SPDX-License-Identifier: Apache-2.0 */
#include "simtree/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "features/tree/parcels.h"
#include "features/tree/routes.h"
#include "features/tree/tree_frames.h"
#include "sim/rng.h"
#include "simtree/network.h"

enum {
    DRIVER = -1,
    TICK_MS = TREE_TICK_MS,
    SUSPECT_MS = 5000,
    FAULTS_UNTIL_MS = 20000,
    STOPPED_MAX_MS = 12000,
    LIMIT_MS = 60000, /* after the last fault */
    SAID_MAX = 64,
};

struct sent {
    struct parcel parcel;
    struct entry entry;
};

enum wire { DIRECT_UP, DIRECT_DOWN, TREE_UP, TREE_DOWN, WIRES };
enum way { WAY_NONE, WAY_UP, WAY_SWALLOWS, WAY_ENDED };

struct agent {
    struct parcels_out out;  /* the driver's */
    uint64_t said, heard;    /* the last number; bit N: number N + 1 */
    struct parcels_in in;    /* its own, from here on */
    int told, order;         /* the number of the last JOIN: the driver's, and its own */
    bool ordered, connected; /* the driver's: all that it gets are parcels; it was joined once */
    struct entry kept[SAID_MAX];
    size_t kept_count;
    bool dead, joined, tells;
    enum way way; /* to the agent above */
    int64_t stopped_until, last[WIRES];
};

struct world {
    struct rng rng;
    enum lie lie;
    bool quick; /* only the driver stands still */
    struct network network;
    int64_t now;
    int size;
    struct agent *agents;
    struct tree_routes *routes;
    bool ticking; /* the driver */
    int64_t ticks, ticked_ms, stopped_until;
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
    return tree_routes_shape(world->routes);
}

/* The network */

static int64_t delay(struct world *world)
{
    return !world->quick && rng_below(&world->rng, 20) == 0 ? rng_between(&world->rng, 1, 3000)
                                                            : rng_between(&world->rng, 1, 40);
}

/* On the wire of `child`: to or from the driver, or the agent above it. */
static void put(struct world *world, struct message *message, int child)
{
    bool up = message->from == child;
    enum wire wire = message->direct ? (up ? DIRECT_UP : DIRECT_DOWN) : (up ? TREE_UP : TREE_DOWN);
    int64_t *last = &world->agents[child].last[wire];
    int64_t at = world->now + delay(world);
    *last = message->at = at > *last ? at : *last;
    network_add(&world->network, message);
}

static void send_direct(struct world *world, int from, int to, enum kind kind,
                        const struct entry *entry)
{
    struct message message = {.kind = kind, .from = from, .to = to, .direct = true};
    if (kind == LEFT && from == DRIVER && !tree_routes_is_direct(world->routes, to))
        wrong(world, "an agent is to end a connection that the driver uses");
    if (kind == JOIN)
        message.number = ++world->agents[to].told;
    if (kind == JOIN)
        world->agents[to].ordered = true;
    else if (to == DRIVER && (kind == JOINED || kind == LEFT))
        message.number = world->agents[from].order;
    if (entry != NULL) {
        message.count = 1;
        message.entries = mem_dup(entry, sizeof(*entry));
    }
    put(world, &message, from == DRIVER ? to : from);
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

static struct entry keep(struct world *world, int place, uint64_t number)
{
    struct sent *sent = mem_alloc(sizeof(*sent));
    parcels_out_add(&world->agents[place].out, &sent->parcel, world->ticks);
    sent->entry = (struct entry){
        .place = place, .serial = sent->parcel.serial, .number = number, .said_ms = world->now};
    return sent->entry;
}

static void tick_later(struct world *world)
{
    if (world->ticking)
        return;
    world->ticking = true;
    world->ticked_ms = world->now;
    at(world, world->now + TICK_MS, TICK, DRIVER);
}

static void cast(struct world *world, struct entry *entries, size_t count)
{
    for (int hop = 0; hop < world->size && count > 0; hop++) {
        struct message message = {.kind = FRAMES, .from = DRIVER, .to = hop, .direct = true};
        if (!tree_routes_is_direct(world->routes, hop))
            continue;
        message.entries = mem_array(count, sizeof(*entries));
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            int place = entries[i].place;
            if (tree_routes_hop(world->routes, place) != hop) {
                entries[kept++] = entries[i];
                continue;
            }
            message.entries[message.count++] = entries[i];
            if (place == hop)
                parcels_out_went_direct(&world->agents[place].out, entries[i].serial);
        }
        count = kept;
        if (message.count > 0)
            put(world, &message, hop);
        else
            free(message.entries);
    }
    if (count > 0)
        wrong(world, "a place has no way");
}

static void driver_again(struct world *world, int place)
{
    struct parcels_out *out = &world->agents[place].out;
    for (const struct parcel *parcel = parcels_out_again(out); parcel != NULL;
         parcel = parcels_out_again(out)) {
        if (world->lie == LIE_NO_REPEAT)
            continue;
        send_direct(world, DRIVER, place, FRAMES, &((const struct sent *)parcel)->entry);
        world->outcome.again++;
    }
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
            driver_again(world, i);
    }
}

static void give_up_children(struct world *world, int place)
{
    for (int i = 0; i < tree_children(shape_of(world), place); i++)
        give_up(world, tree_first_child(shape_of(world), place) + i, true);
}

static bool is_late(void *context, int place)
{
    const struct world *world = context;
    return parcels_out_is_late(&world->agents[place].out, world->ticks);
}

static void driver_tick(struct world *world)
{
    bool more = false;
    world->ticking = false;
    world->ticks += world->lie == LIE_COUNTS_PAUSES ? (world->now - world->ticked_ms) / TICK_MS : 1;
    for (int i = 0; i < world->size; i++) {
        if (world->agents[i].dead)
            continue;
        int blamed = is_late(world, i) ? tree_routes_blame(world->routes, i, is_late, world) : -1;
        if (blamed >= 0)
            give_up(world, blamed, true);
        more |= world->agents[i].out.first != NULL;
    }
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

static void join_again(struct world *world, int place)
{
    int first = tree_first_child(shape_of(world), place);
    for (int i = 0; i < tree_children(shape_of(world), place); i++) {
        if (tree_routes_renew(world->routes, first + i))
            send_direct(world, DRIVER, first + i, JOIN, NULL);
    }
}

/* An agent */

static void hear(struct world *world, struct agent *agent, const struct entry *entry)
{
    int64_t waited = world->now - entry->said_ms;
    uint64_t bit = (uint64_t)1 << (entry->number - 1);
    if (waited > world->outcome.longest_ms)
        world->outcome.longest_ms = waited;
    world->outcome.frames++;
    if ((agent->heard & bit) != 0)
        wrong(world, "a frame came twice");
    else if (agent->heard != bit - 1)
        wrong(world, "a frame has overtaken another one");
    agent->heard |= bit;
}

/* Those whose turn has come. */
static void hear_kept(struct world *world, struct agent *agent)
{
    for (size_t i = 0; i < agent->kept_count;) {
        const struct entry *entry = &agent->kept[i];
        uint64_t bit = (uint64_t)1 << (entry->number - 1);
        if (entry->serial > agent->in.taken || agent->heard != bit - 1) {
            i++;
            continue;
        }
        hear(world, agent, entry);
        agent->kept[i] = agent->kept[--agent->kept_count];
        i = 0;
    }
}

static void agent_takes(struct world *world, int place, const struct entry *entry)
{
    struct agent *agent = &world->agents[place];
    if (entry->serial == 0) {
        hear(world, agent, entry);
        return;
    }
    enum parcel_turn turn = parcels_in_take(&agent->in, entry->serial);
    if (turn == PARCEL_NEXT || world->lie == LIE_TAKES_TWICE ||
        (turn == PARCEL_AHEAD && world->lie == LIE_KEEPS_NOTHING))
        hear(world, agent, entry);
    else if (turn == PARCEL_AHEAD)
        agent->kept[agent->kept_count++] = *entry;
    hear_kept(world, agent);
    if (world->lie == LIE_CONFIRMS_ALL && entry->serial > agent->in.taken)
        agent->in.taken = entry->serial;
    if (parcels_in_owes(&agent->in) && !agent->tells)
        at(world, world->now + TICK_MS, TICK, place);
    agent->tells |= parcels_in_owes(&agent->in);
}

static void agent_tells(struct world *world, int place)
{
    struct agent *agent = &world->agents[place];
    const struct entry taken = {.place = place, .serial = parcels_in_tell(&agent->in)};
    agent->tells = false;
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
        world->outcome.through += on.count;
        if (on.count > 0 && world->agents[first + i].way == WAY_UP)
            put(world, &on, first + i);
        else
            free(on.entries);
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
    case TICK: agent_tells(world, place); break;
    default: break;
    }
}

/* What happens from outside */

static void end_way(struct world *world, int child)
{
    struct agent *agent = &world->agents[child];
    if (agent->way != WAY_UP)
        return;
    agent->way = WAY_ENDED;
    at(world, world->now + delay(world), CLOSED, child);
}

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
    switch (world->quick ? 0 : rng_below(&world->rng, 6)) {
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

static void say(struct world *world)
{
    struct entry *entries AUTO_FREE = mem_array((size_t)world->size, sizeof(*entries));
    bool all = rng_below(&world->rng, 2) == 0, small = rng_below(&world->rng, 3) == 0;
    size_t count = 0;
    for (int i = 0; i < world->size; i++) {
        struct agent *agent = &world->agents[i];
        if (agent->dead || (!all && rng_below(&world->rng, 2) == 0))
            continue;
        const struct entry plain = {.place = i, .number = ++agent->said, .said_ms = world->now};
        bool direct = tree_routes_is_direct(world->routes, i) || small;
        if (direct && !agent->ordered) {
            send_direct(world, DRIVER, i, FRAMES, &plain);
            continue;
        }
        entries[count] = keep(world, i, plain.number);
        if (!direct) {
            count++;
            continue;
        }
        parcels_out_went_direct(&agent->out, entries[count].serial);
        send_direct(world, DRIVER, i, FRAMES, &entries[count]);
    }
    cast(world, entries, count);
    tick_later(world);
}

static void confirm(struct world *world, const struct entry *taken)
{
    if (parcels_out_confirm(&world->agents[taken->place].out, taken->serial) < 0)
        wrong(world, "what was never sent is confirmed");
}

static void driver_event(struct world *world, const struct message *message)
{
    switch (message->kind) {
    case TAKEN: confirm(world, &message->entries[0]); break;
    case LEFT:
        if (is_old(world, message))
            break;
        give_up(world, message->from, false);
        world->agents[message->from].ordered = world->agents[message->from].connected;
        break;
    case TICK: driver_tick(world); break;
    case FAULT: fault(world); break;
    case JOINED:
        if (is_old(world, message))
            break;
        driver_connects(world, message->from);
        world->agents[message->from].connected = true;
        break;
    case HEARD: join_again(world, message->from); break;
    case SEND: say(world); break;
    case LOST:
        give_up(world, message->from, false);
        give_up_children(world, message->from);
        parcels_out_clear(&world->agents[message->from].out);
        break;
    default: break;
    }
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
    if (agent->dead || (through && agent->way != WAY_UP))
        return;
    if (agent->stopped_until > world->now)
        put_off(world, message, agent->stopped_until);
    else
        agent_event(world, message->to, message);
}

/* All that lives has all that was sent to it, and what it sent has come. */
static void check_end(struct world *world)
{
    for (int i = 0; i < world->size; i++) {
        const struct agent *agent = &world->agents[i];
        if (agent->dead)
            continue;
        if (agent->heard != ((uint64_t)1 << agent->said) - 1)
            wrong(world, "a frame never came");
        if (agent->out.first != NULL)
            wrong(world, "a frame that came is not confirmed");
        if (!tree_routes_is_direct(world->routes, i) && agent->way != WAY_UP &&
            agent->way != WAY_SWALLOWS)
            wrong(world, "a way leads through a connection that is not there");
    }
}

static void begin(struct world *world)
{
    world->routes = tree_routes_create(world->size);
    world->agents = mem_array((size_t)world->size, sizeof(*world->agents));
    int faults = rng_below(&world->rng, 7), says = 2 + rng_below(&world->rng, 11);
    for (int i = 0; i < world->size; i++) {
        struct agent *agent = &world->agents[i];
        parcels_out_init(&agent->out, TREE_PATIENCE, 1, free_sent);
        if (tree_parent(shape_of(world), i) != TREE_ROOT)
            send_direct(world, DRIVER, i, JOIN, NULL);
    }
    for (int i = 0; i < faults; i++)
        at(world, rng_between(&world->rng, 0, FAULTS_UNTIL_MS), FAULT, DRIVER);
    for (int i = 0; i < 3; i++) /* while agents connect */
        at(world, rng_between(&world->rng, 0, 200), SEND, DRIVER);
    for (int i = 0; i < says; i++)
        at(world, rng_between(&world->rng, 0, FAULTS_UNTIL_MS + 5000), SEND, DRIVER);
}

static void clear(struct world *world)
{
    network_clear(&world->network);
    for (int i = 0; i < world->size; i++)
        parcels_out_clear(&world->agents[i].out);
    free(world->agents);
    tree_routes_destroy(world->routes);
}

struct outcome world_run(uint64_t seed, int agents, enum lie lie)
{
    struct world world = {.rng = rng_stream(seed, 1), .lie = lie, .quick = seed % 8 == 0};
    struct message message;
    world.size = agents > 0 ? agents : (int)rng_between(&world.rng, 2, 60);
    world.outcome.agents = world.size;
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
