/* SPDX-License-Identifier: Apache-2.0 */
#include "simcore/world.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "simcore/node.h"

#define MS ((int64_t)1000000)
enum { EVENTS_MAX = 200000 };

static void node_work(struct world *world, int set, int rank);

void world_break(struct world *world, enum invariant invariant, const char *format, ...)
{
    va_list args;
    if (world->verdict->broken != HOLDS)
        return;
    world->verdict->broken = invariant;
    va_start(args, format);
    vsnprintf(world->verdict->text, sizeof world->verdict->text, format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void tell(const struct world *world,
                                                       const char *format, ...)
{
    va_list args;
    if (!world->verbose)
        return;
    printf("%9.3f ms  ", (double)world->now_ns / 1e6);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

static int64_t random_time(struct rng *rng, int64_t mean)
{
    return rng_between(rng, 1, 2 * mean);
}

static void add(struct world *world, int64_t after_ns, enum task_kind kind, int set, int rank)
{
    agenda_add(
        &world->agenda,
        (struct task){.at_ns = world->now_ns + after_ns, .kind = kind, .set = set, .rank = rank});
}

static void node_create(struct world *world, int set, int rank)
{
    const struct program *program = world->program;
    int set_rank = program_set_rank(program, set, rank);
    if (set_rank < 0)
        return;
    world->configs[set][rank] = (struct core_config){
        .set = set,
        .rank = set_rank,
        .size = program->sets[set].count,
        .ranks = program->sets[set].ranks,
        .world_size = program->ranks,
        .capacity = program->capacity,
        .threshold = world->fault == FAULT_FUSION ? (size_t)1 << 30 : program->threshold,
        .cycle_ns = program->cycle_ns,
        .tuner = {.on = program->tunes, .steps = 1, .points = 5},
        .warn_ns = 20 * MS,
        .silence_ns = 300 * MS,
    };
    struct node *node = &world->nodes[set][rank];
    node->core = core_create(&world->configs[set][rank], world->now_ns);
    node->tick_ns = INT64_MAX;
    node->waits_for = -1;
    node->least_priority = INT_MAX;
}

/* ---- The program of a rank ------------------------------------------------------------------- */

static void begin_step(struct world *world, int rank)
{
    struct sim_rank *self = &world->ranks[rank];
    const struct step *step = &world->program->steps[self->step];
    for (int i = 0; i < step->count; i++)
        self->order[i] = i;
    for (int i = step->count - 1; i > 0 && !world->program->in_order; i--) {
        int other = rng_below(&self->rng, i + 1), kept = self->order[i];
        self->order[i] = self->order[other];
        self->order[other] = kept;
    }
    self->position = 0;
}

static void go_on(struct world *world, int rank)
{
    int64_t delay = random_time(&world->ranks[rank].rng, world->program->delay_ns);
    add(world, world->program->slow_rank == rank ? 10 * delay : delay, TASK_STEP, -1, rank);
}

static void complete(struct world *world, int rank, struct ticket *ticket, enum hvd_status status,
                     const char *text, int last_joined)
{
    struct sim_rank *self = &world->ranks[rank];
    ticket->completions++;
    ticket->status = status;
    ticket->last_joined = last_joined;
    snprintf(ticket->text, sizeof ticket->text, "%s", text);
    if (world->fault == FAULT_TWICE && rng_chance(&world->rng, 5))
        ticket->completions++;
    if (world->fault == FAULT_FORGET && rng_chance(&world->rng, 5))
        ticket->completions--;
    if (world->fault == FAULT_OTHER && status == HVD_ERR_MISMATCH && rank == 0)
        ticket->status = HVD_ERR_ARGUMENT;
    if (world->fault == FAULT_STATUS && status == HVD_ERR_MISMATCH)
        ticket->status = HVD_OK;
    if (world->fault == FAULT_TEXT && status == HVD_ERR_MISMATCH && rank == 0)
        ticket->text[0] = '?';
    if (world->fault == FAULT_JOIN && last_joined >= 0 && rank == 0)
        ticket->last_joined++;
    world->statistics->succeeded += status == HVD_OK;
    world->statistics->mismatches += status == HVD_ERR_MISMATCH;
    world->statistics->lost += status == HVD_ERR_PEER_LOST;
    world->statistics->shut_down += status == HVD_ERR_SHUT_DOWN;
    tell(world, "rank %d: '%s' has status %d %s", rank,
         ticket->call == NULL ? "join" : ticket->call->name, status, text);
    if (ticket->completions > 0)
        check_ticket(world, rank, ticket);
    if (--self->outstanding == 0 && self->waits) {
        self->waits = false;
        go_on(world, rank);
    }
}

static void submit(struct world *world, int rank, const struct call *call)
{
    struct sim_rank *self = &world->ranks[rank];
    int set = call == NULL ? 0 : call->set, set_rank = program_set_rank(world->program, set, rank);
    struct node *node = &world->nodes[set][rank];
    if (set_rank < 0 || node->core == NULL || self->ticket_count == TICKETS_MAX)
        return;
    struct ticket *ticket = &self->tickets[self->ticket_count++];
    *ticket = (struct ticket){.call = call, .step = self->step};
    struct request request =
        call == NULL ? (struct request){.key = request_key(KIND_JOIN, NULL), .kind = KIND_JOIN}
                     : program_request(world->program, call, set_rank);
    struct error err = ERROR_INIT;
    if (world->fault == FAULT_PRIORITY)
        request.priority = -request.priority;
    self->outstanding++;
    world->statistics->submissions++;
    tell(world, "rank %d submits '%s' to set %d", rank, request.key, set);
    enum hvd_status status = core_submit(node->core, &request, ticket, world->now_ns, &err);
    if (status != HVD_OK) {
        complete(world, rank, ticket, status, err.text, 0);
        self->finished =
            self->finished || status == HVD_ERR_PEER_LOST || status == HVD_ERR_SHUT_DOWN;
    }
    node_work(world, set, rank);
}

static void wait_for_all(struct world *world, int rank)
{
    struct sim_rank *self = &world->ranks[rank];
    if (self->outstanding == 0) {
        go_on(world, rank);
        return;
    }
    self->waits = true;
    if (!rng_chance(&self->rng, world->program->hurry_percent))
        return;
    for (int i = 0; i < self->ticket_count && self->waits; i++) {
        const struct call *call = self->tickets[i].call;
        if (self->tickets[i].completions > 0 || call == NULL)
            continue;
        core_hurry(world->nodes[call->set][rank].core, &self->tickets[i]);
        node_work(world, call->set, rank);
    }
}

static void leave(struct world *world, int rank)
{
    world->ranks[rank].left = true;
    tell(world, "rank %d shuts down", rank);
    for (int set = 0; set < world->program->set_count; set++)
        if (world->nodes[set][rank].core != NULL) {
            core_leave(world->nodes[set][rank].core, HVD_ERR_SHUT_DOWN);
            node_work(world, set, rank);
        }
    add(world, 1000 * MS, TASK_FORCE, -1, rank);
}

static void rank_step(struct world *world, int rank)
{
    struct sim_rank *self = &world->ranks[rank];
    if (!self->alive || self->left)
        return;
    bool steps_left = self->step < world->program->own_steps[rank] && !self->finished;
    if (!steps_left) {
        if (world->program->joins && self->step >= 0 && !self->finished) {
            self->finished = true;
            self->step = STEPS_MAX;
            submit(world, rank, NULL);
            wait_for_all(world, rank);
            return;
        }
        leave(world, rank);
        return;
    }
    const struct step *step = &world->program->steps[self->step];
    if (self->position == 0)
        begin_step(world, rank);
    if (self->position < step->count) {
        submit(world, rank, &step->calls[self->order[self->position++]]);
        if (world->program->in_order)
            wait_for_all(world, rank);
        else
            go_on(world, rank);
        return;
    }
    self->step++;
    self->position = 0;
    wait_for_all(world, rank);
}

/* ---- The loop of a node ---------------------------------------------------------------------- */

static void lose_peers(struct world *world, int set, int rank)
{
    const struct program *program = world->program;
    for (int i = 0; i < program->sets[set].count; i++) {
        int other = program->sets[set].ranks[i];
        struct node *node = &world->nodes[set][other];
        bool star = i == 0 || program->sets[set].ranks[0] == rank;
        if (other != rank && node->core != NULL && !node->ended && (star || node->blocked))
            add(world, random_time(&world->rng, program->latency_ns), TASK_LOSE, set, other);
    }
}

/* A rank that has lost another one: the engine is aborted, so all its sets end. */
static void rank_lost(struct world *world, int rank, const char *text)
{
    for (int set = 0; set < world->program->set_count; set++) {
        struct node *node = &world->nodes[set][rank];
        if (node->core == NULL || node->lost)
            continue;
        node->lost = true;
        node->blocked = false;
        tell(world, "rank %d, set %d: lost: %s", rank, set, text);
        core_lost(node->core, HVD_ERR_PEER_LOST, text);
        lose_peers(world, set, rank);
        node_work(world, set, rank);
    }
}

static void send(struct world *world, int set, int rank, int to, const struct action *action)
{
    const struct program *program = world->program;
    int other = program->sets[set].ranks[to];
    struct node *target = &world->nodes[set][other];
    if (other == rank || world->nodes[set][rank].lost)
        return;
    world->statistics->messages++;
    if (world->fault == FAULT_LOSE && rng_chance(&world->rng, 5))
        return;
    int64_t at = world->now_ns + random_time(&world->rng, program->latency_ns);
    int64_t *arrival = &target->arrivals[rank];
    *arrival = at > *arrival ? at : *arrival + 1;
    struct task task = {.at_ns = *arrival,
                        .kind = TASK_MESSAGE,
                        .set = set,
                        .rank = other,
                        .from = program_set_rank(program, set, rank),
                        .bytes = mem_dup(action->bytes, action->length),
                        .length = action->length};
    if (world->fault == FAULT_BYTES && rng_chance(&world->rng, 5))
        task.bytes[rng_below(&world->rng, (int)task.length)] ^= 0x55;
    agenda_add(&world->agenda, task);
}

/* An operation with data ends when all members of the set are in it. */
static void arrive(struct world *world, int set, int rank, const struct action *action)
{
    struct node *node = &world->nodes[set][rank];
    struct operation *operation = &world->operations[set][node->runs++];
    const struct sim_set *members = &world->program->sets[set];
    enum kind kind = action->parts[0].request.kind;
    if (kind == KIND_BARRIER)
        return;
    node->blocked = true;
    if (kind == KIND_REMOVE_SET) {
        int target = action->parts[0].request.root;
        add(world, 0, TASK_RESUME, set, rank);
        if (world->nodes[target][rank].core == NULL)
            return;
        node->waits_for = target;
        core_leave(world->nodes[target][rank].core, HVD_ERR_UNKNOWN_SET);
        node_work(world, target, rank);
        return;
    }
    if (kind == KIND_ADD_SET)
        node_create(world, ((const struct ticket *)action->parts[0].token)->call->target, rank);
    if (++operation->arrived < members->count)
        return;
    for (int i = 0; i < members->count; i++)
        add(world, random_time(&world->rng, 100000), TASK_RESUME, set, members->ranks[i]);
}

/* The engine was aborted: an operation that comes now fails. */
static void run_in_vain(struct world *world, int rank, const struct action *action)
{
    for (size_t i = 0; i < action->count; i++)
        if (action->parts[i].token != NULL)
            complete(world, rank, action->parts[i].token, HVD_ERR_PEER_LOST, "aborted", 0);
}

static void run(struct world *world, int set, int rank, const struct action *action)
{
    if (world->nodes[set][rank].lost) {
        run_in_vain(world, rank, action);
        return;
    }
    world->statistics->operations++;
    world->statistics->tensors += action->count;
    tell(world, "rank %d, set %d: runs %zu tensors, the first is '%s'", rank, set, action->count,
         action->parts[0].request.key);
    if (world->nodes[set][rank].runs == OPERATIONS_MAX) {
        world_break(world, CALM, "there are too many operations");
        return;
    }
    if (world->fault == FAULT_SWAP && set == 0 && rank == 0 && action->count > 1) {
        struct part kept = action->parts[0];
        action->parts[0] = action->parts[1];
        action->parts[1] = kept;
    }
    check_operation(world, set, rank, action);
    arrive(world, set, rank, action);
    for (size_t i = 0; i < action->count; i++)
        if (action->parts[i].token != NULL)
            complete(world, rank, action->parts[i].token, HVD_OK, "", 0);
}

static void carry_out(struct world *world, int set, int rank, const struct action *action)
{
    struct node *node = &world->nodes[set][rank];
    switch (action->kind) {
    case ACTION_SEND:
        node->least_priority = INT_MAX;
        for (int i = 0; i < world->program->sets[set].count; i++)
            if (action->to == TO_ALL || action->to == i)
                send(world, set, rank, i, action);
        break;
    case ACTION_RUN: run(world, set, rank, action); break;
    case ACTION_DONE:
        complete(world, rank, action->token, action->status, action->text, action->rank);
        break;
    case ACTION_TUNED:
        node->tunings += world->fault != FAULT_TUNE || rank != 0;
        world->statistics->tunings++;
        break;
    case ACTION_STALL: world->statistics->stalls++; break;
    case ACTION_GOES_ON: break;
    case ACTION_ENDED:
        tell(world, "rank %d, set %d: ended with %d: %s", rank, set, action->status, action->text);
        node->ended = world->fault != FAULT_END;
        break;
    case ACTION_CLOSE: break;
    }
}

static void receive(struct world *world, int set, int rank, const struct task *task)
{
    struct error err = ERROR_INIT;
    struct node *node = &world->nodes[set][rank];
    if (core_receive(node->core, task->from, task->bytes, task->length, world->now_ns, &err) == 0)
        return;
    world_break(world, HONEST, "rank %d, set %d: %s", rank, set, err.text);
    rank_lost(world, rank, err.text);
}

static void drain(struct world *world, int set, int rank)
{
    struct node *node = &world->nodes[set][rank];
    for (size_t i = 0; i < node->inbox_count && !node->lost; i++)
        receive(world, set, rank, &node->inbox[i]);
    for (size_t i = 0; i < node->inbox_count; i++)
        free(node->inbox[i].bytes);
    node->inbox_count = 0;
}

/* Does what the core wants, until the node is in an operation or has to wait. */
static void node_work(struct world *world, int set, int rank)
{
    struct node *node = &world->nodes[set][rank];
    for (int turns = 0; world->ranks[rank].alive && !node->blocked; turns++) {
        struct action action;
        struct error err = ERROR_INIT;
        if (turns > 10000) {
            world_break(world, CALM, "the core of rank %d does not come to rest", rank);
            return;
        }
        if (core_take(node->core, &action)) {
            carry_out(world, set, rank, &action);
            action_destroy(&action);
            continue;
        }
        drain(world, set, rank);
        int64_t deadline = core_deadline(node->core);
        if (deadline > world->now_ns) {
            if (deadline < node->tick_ns && deadline != INT64_MAX)
                add(world, deadline - world->now_ns, TASK_TICK, set, rank);
            node->tick_ns = deadline;
            return;
        }
        if (core_turn(node->core, world->now_ns, &err) == 0)
            continue;
        if (world->program->dies < 0 && world->fault == FAULT_NONE)
            world_break(world, HONEST, "rank %d, set %d: %s", rank, set, err.text);
        rank_lost(world, rank, err.text);
        return;
    }
}

/* Messages that have arrived together are received before the core decides. */
static void message(struct world *world, struct task *task)
{
    struct node *node = &world->nodes[task->set][task->rank];
    if (!world->ranks[task->rank].alive || node->lost) {
        free(task->bytes);
        return;
    }
    if (node->inbox_count == node->inbox_room) {
        node->inbox_room = 2 * node->inbox_room + 8;
        node->inbox = mem_resize_array(node->inbox, node->inbox_room, sizeof *node->inbox);
    }
    node->inbox[node->inbox_count++] = *task;
    if (node->core == NULL || node->blocked)
        return;
    drain(world, task->set, task->rank);
    struct error err = ERROR_INIT;
    if (core_turn(node->core, world->now_ns, &err) != 0)
        rank_lost(world, task->rank, err.text);
    node_work(world, task->set, task->rank);
}

static void resume(struct world *world, int set, int rank)
{
    struct node *node = &world->nodes[set][rank];
    if (!world->ranks[rank].alive || node->lost)
        return;
    if (node->waits_for >= 0) {
        const struct node *target = &world->nodes[node->waits_for][rank];
        if (target->core != NULL && !target->ended) {
            add(world, MS, TASK_RESUME, set, rank);
            return;
        }
    }
    node->waits_for = -1;
    node->blocked = false;
    core_resumed(node->core, world->now_ns);
    drain(world, set, rank);
    struct error err = ERROR_INIT;
    if (core_turn(node->core, world->now_ns, &err) != 0)
        rank_lost(world, rank, err.text);
    for (int s = 0; s < world->program->set_count; s++)
        if (world->nodes[s][rank].core != NULL)
            node_work(world, s, rank);
}

static void strike(struct world *world)
{
    const struct program *program = world->program;
    world->broken_job = true;
    if (program->leaves >= 0) {
        if (world->ranks[program->leaves].alive && !world->ranks[program->leaves].left)
            leave(world, program->leaves);
        return;
    }
    tell(world, "rank %d %s", program->dies, program->freezes ? "freezes" : "dies");
    world->ranks[program->dies].alive = false;
    for (int set = 0; set < program->set_count; set++) {
        const struct sim_set *members = &program->sets[set];
        if (program_set_rank(program, set, program->dies) < 0)
            continue;
        if (!program->freezes)
            lose_peers(world, set, program->dies);
        /* An engine notices it in an operation, at the latest when its own limit is over. */
        for (int i = 0; i < members->count; i++)
            add(world, 2000 * MS, TASK_LOSE, set, members->ranks[i]);
    }
}

static void lose(struct world *world, int set, int rank)
{
    struct node *node = &world->nodes[set][rank];
    if (node->core == NULL || node->ended || node->lost || !world->ranks[rank].alive)
        return;
    rank_lost(world, rank, "another rank was lost");
}

static void force(struct world *world, int rank)
{
    for (int set = 0; set < world->program->set_count; set++) {
        struct node *node = &world->nodes[set][rank];
        if (node->core == NULL || node->ended || !world->ranks[rank].alive)
            continue;
        if (!world->broken_job)
            world_break(world, ENDS, "rank %d waits for the end of set %d", rank, set);
        rank_lost(world, rank, "the end did not come");
    }
}

static void perform(struct world *world, struct task *task)
{
    struct node *node = task->set < 0 ? NULL : &world->nodes[task->set][task->rank];
    switch (task->kind) {
    case TASK_STEP: rank_step(world, task->rank); break;
    case TASK_MESSAGE: message(world, task); break;
    case TASK_TICK:
        node->tick_ns = INT64_MAX;
        if (node->core != NULL)
            node_work(world, task->set, task->rank);
        break;
    case TASK_RESUME: resume(world, task->set, task->rank); break;
    case TASK_FAULT: strike(world); break;
    case TASK_LOSE: lose(world, task->set, task->rank); break;
    case TASK_FORCE: force(world, task->rank); break;
    }
}

static void destroy(struct world *world)
{
    for (int set = 0; set < SETS_MAX; set++) {
        for (int rank = 0; rank < RANKS_MAX; rank++) {
            struct node *node = &world->nodes[set][rank];
            core_destroy(node->core);
            for (size_t i = 0; i < node->inbox_count; i++)
                free(node->inbox[i].bytes);
            free(node->inbox);
        }
        for (int i = 0; i < OPERATIONS_MAX && world->operations[set] != NULL; i++)
            free(world->operations[set][i].keys);
        free(world->operations[set]);
    }
    agenda_destroy(&world->agenda);
    free(world);
}

void world_run(const struct program *program, enum fault fault, bool verbose,
               struct statistics *statistics, struct verdict *verdict)
{
    struct world *world = mem_alloc(sizeof *world);
    struct task task;
    *verdict = (struct verdict){HOLDS, ""};
    world->program = program;
    world->fault = fault;
    world->verbose = verbose;
    world->statistics = statistics;
    world->verdict = verdict;
    world->rng = rng_stream(program->seed, 2);
    for (int set = 0; set < program->set_count; set++)
        world->operations[set] = mem_array(OPERATIONS_MAX, sizeof(struct operation));
    for (int rank = 0; rank < program->ranks; rank++) {
        world->ranks[rank].alive = true;
        world->ranks[rank].rng = rng_stream(program->seed, 10 + (uint64_t)rank);
        for (int set = 0; set < program->static_count; set++)
            node_create(world, set, rank);
        go_on(world, rank);
    }
    if (program->dies >= 0 || program->leaves >= 0)
        add(world, program->fault_ns, TASK_FAULT, -1, 0);
    while (verdict->broken == HOLDS && agenda_take(&world->agenda, &task)) {
        world->now_ns = task.at_ns;
        perform(world, &task);
        if (++world->events > EVENTS_MAX)
            world_break(world, CALM, "there are too many events");
    }
    if (verdict->broken == HOLDS)
        check_world(world);
    statistics->events += world->events;
    destroy(world);
}
