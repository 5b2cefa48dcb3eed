/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of the simulated world: how they start, register, train together, see that a peer is
 * gone, ask for their next place, and end. What a process does is drawn when it starts; faults
 * change it.
 */
#include "sim/world.h"

struct sim_worker *world_worker(struct world *world, int seat)
{
    if (seat < 0 || seat >= WORLD_SEATS || world->seats[seat] == 0)
        return NULL;
    return &world->workers[world->seats[seat] - 1];
}

bool worker_is_live(const struct sim_worker *worker)
{
    return worker != NULL && !worker->gone && !worker->told_exited;
}

static void in_ms(struct world *world, int uid, enum task_kind kind, int64_t delay_ms,
                  uint32_t epoch, int64_t value)
{
    world_add(world, &(struct task){.at_ms = world->now_ms + delay_ms,
                                    .kind = kind,
                                    .host = world->workers[uid].host,
                                    .uid = uid,
                                    .epoch = epoch,
                                    .value = value});
}

static enum reaction pick_reaction(struct rng *rng, bool elastic)
{
    if (elastic && rng_chance(rng, 95))
        return REACTION_ASK;
    return (enum reaction)rng_between(rng, REACTION_EXIT_1, REACTIONS - 1);
}

static void spring_trap(struct world *world, struct sim_worker *worker, enum trap trap)
{
    const int uid = (int)(worker - world->workers);
    struct rng *rng = &worker->rng;
    switch (trap) {
    case TRAP_CRASH: in_ms(world, uid, TASK_END, rng_between(rng, 0, 600), 0, 1); break;
    case TRAP_EXIT_0: in_ms(world, uid, TASK_END, rng_between(rng, 0, 2000), 0, 0); break;
    case TRAP_HANG: worker->hung = true; break;
    case TRAP_STUBBORN: worker->stubborn = true; break;
    case TRAP_UNREGISTERED: worker->registers = false; break;
    case TRAP_SETUP_ABORT: worker->setup_abort = true; break;
    case TRAP_LATE_FINISHED: worker->finish_delay_ms = rng_between(rng, 500, 2000); break;
    default: break;
    }
}

int worker_create(struct world *world, const struct elastic_member *member, uint32_t epoch)
{
    if (world->worker_count == WORLD_WORKERS) {
        world_problem(world, INV_ENDS, "%d workers were started", WORLD_WORKERS);
        return -1;
    }
    const int uid = world->worker_count++;
    const int h = world->by_number[member->host];
    struct sim_worker *worker = &world->workers[uid];
    *worker = (struct sim_worker){.seat = member->seat,
                                  .host = h,
                                  .slot = member->slot,
                                  .rng = rng_stream(world->schedule->seed, 1000 + (uint64_t)uid),
                                  .link = world->hosts[h].link,
                                  .epoch = epoch,
                                  .rank = member->rank,
                                  .local_rank = member->local_rank};
    const enum program program = world->schedule->program;
    worker->registers =
        program == PROGRAM_HOROVOD || (program == PROGRAM_MIXED && rng_chance(&worker->rng, 50));
    worker->reaction = pick_reaction(&worker->rng, worker->registers);
    worker->finish_delay_ms = rng_between(&worker->rng, 0, 100);
    world->seats[member->seat] = uid + 1;
    host_receive(world, h, (struct task){.kind = TASK_SPAWN, .uid = uid, .epoch = epoch});
    return uid;
}

void worker_newcomer(struct world *world, int uid)
{
    struct sim_worker *worker = &world->workers[uid];
    worker->newcomer = true;
    worker->local_rank = -1; /* the core gives it one when it joins */
}

void worker_joins(struct world *world, int uid, const struct elastic_member *member, uint32_t epoch)
{
    struct sim_worker *worker = &world->workers[uid];
    worker->newcomer = false;
    worker->epoch = epoch;
    worker->rank = member->rank;
    worker->local_rank = member->local_rank;
    host_receive(world, worker->host, (struct task){.kind = TASK_JOIN, .uid = uid, .epoch = epoch});
}

static void tell(struct world *world, int uid, enum elastic_event_kind kind, int64_t delay_ms)
{
    const struct sim_worker *worker = &world->workers[uid];
    host_send(world, worker->host, delay_ms,
              &(struct elastic_event){.kind = kind,
                                      .host = world->hosts[worker->host].number,
                                      .seat = worker->seat,
                                      .local_rank = worker->local_rank,
                                      .code = worker->signaled ? -worker->code : worker->code,
                                      .signaled = worker->signaled,
                                      .request = (uint64_t)worker->request,
                                      .since_ms = core_now(world)});
}

/* The communicator of the running epoch. */

void comm_start(struct world *world, uint32_t epoch, int size)
{
    world->comm = (struct sim_comm){.epoch = epoch, .size = size};
}

static void comm_stop(struct world *world)
{
    struct sim_comm *comm = &world->comm;
    if (comm->steady)
        world->work_left_ms -= world->now_ms - comm->steady_since_ms;
    if (world->work_left_ms < 100)
        world->work_left_ms = 100;
    comm->broken = true;
}

/* `worker` has left it, or died. */
static void comm_leave(struct world *world, struct sim_worker *left)
{
    struct sim_comm *comm = &world->comm;
    const uint32_t epoch = left->comm;
    left->comm = 0;
    if (epoch == 0 || epoch != comm->epoch || comm->broken || comm->done)
        return;
    const bool steady = comm->steady;
    comm_stop(world);
    if (world->schedule->gate && !steady)
        return; /* the others wait at the gate, until the driver knows it */
    for (int uid = 0; uid < world->worker_count; uid++) {
        struct sim_worker *worker = &world->workers[uid];
        if (worker->alive && worker->comm == epoch)
            in_ms(world, uid, TASK_PEER_FAILED,
                  steady ? rng_between(&worker->rng, 50, 300)
                         : rng_between(&worker->rng, 500, 8000),
                  epoch, 0);
    }
}

static void tell_stuck(struct world *world, int uid)
{
    world_add(world, &(struct task){.at_ms = world->now_ms,
                                    .kind = TASK_TELL,
                                    .event = {.kind = ELASTIC_STUCK,
                                              .seat = world->workers[uid].seat,
                                              .first = true}});
}

void comm_gate_breaks(struct world *world)
{
    struct sim_comm *comm = &world->comm;
    if (!world->schedule->gate || comm->steady || comm->gate_broken)
        return;
    comm->gate_broken = true;
    for (int uid = 0; uid < world->worker_count; uid++) {
        const struct sim_worker *worker = &world->workers[uid];
        if (worker->alive && worker->comm == comm->epoch && worker_is_live(worker))
            tell_stuck(world, uid);
    }
}

void comm_wait_on(struct world *world, int uid, uint32_t epoch)
{
    struct sim_worker *worker = &world->workers[uid];
    worker->told_held = false;
    worker->epoch = epoch;
    if (!worker->alive)
        return;
    worker->comm = epoch;
    world->comm.joined++;
}

static void comm_commit_later(struct world *world)
{
    world_add(world, &(struct task){.at_ms = world->now_ms + rng_between(&world->rng, 50, 2000),
                                    .kind = TASK_COMMIT,
                                    .epoch = world->comm.epoch});
}

static void comm_join(struct world *world, int uid, uint32_t epoch)
{
    struct sim_worker *worker = &world->workers[uid];
    struct sim_comm *comm = &world->comm;
    worker->comm = epoch;
    if (worker->setup_abort) {
        worker->setup_abort = false;
        in_ms(world, uid, TASK_END, rng_between(&worker->rng, 10, 800), 0, -6);
    }
    const bool ours = epoch == comm->epoch;
    if (world->schedule->gate && ours && comm->gate_broken)
        tell_stuck(world, uid);
    if (!ours || comm->broken || ++comm->joined < comm->size) {
        if (world->schedule->gate && ours)
            return;
        in_ms(world, uid, TASK_SETUP_LIMIT, rng_between(&worker->rng, 4000, 20000), epoch, 0);
        return;
    }
    comm->steady = true;
    comm->steady_since_ms = world->now_ms;
    int64_t work_ms = world->work_left_ms;
    if (world->benign && work_ms > 2000)
        work_ms = 2000;
    world_add(world, &(struct task){
                         .at_ms = world->now_ms + work_ms, .kind = TASK_WORK_DONE, .epoch = epoch});
    if (comm->notified)
        comm_commit_later(world);
    hangs_look_later(world);
}

/* What single workers do. */

static void ask(struct world *world, int uid)
{
    struct sim_worker *worker = &world->workers[uid];
    if (worker->registers && !worker->registered) {
        worker->registered = true;
        tell(world, uid, ELASTIC_REGISTERED, 0);
    }
    if (world->request_count == WORLD_REQUESTS) {
        world_problem(world, INV_WORLD, "more than %d requests", WORLD_REQUESTS);
        return;
    }
    world->requests[world->request_count] =
        (struct sim_request){.uid = uid, .host = worker->host, .epoch = worker->epoch};
    worker->request = ++world->request_count;
    comm_leave(world, worker);
    tell(world, uid, ELASTIC_ASKED, 0);
}

void worker_end(struct world *world, int uid, int64_t code)
{
    struct sim_worker *worker = &world->workers[uid];
    if (!worker->alive)
        return;
    world_story(world, "   worker %d (seat %d, rank %d on %s) ends: %lld", uid, worker->seat,
                worker->rank, world->hosts[worker->host].name, (long long)code);
    worker->alive = false;
    worker->ended = true;
    worker->code = (int)code;
    worker->signaled = code < 0;
    comm_leave(world, worker);
    if (worker->request != 0)
        world->requests[worker->request - 1].dropped = true;
    const bool early = rng_chance(&worker->rng, 50);
    if (worker->request != 0 && early)
        tell(world, uid, ELASTIC_ASK_DROPPED, 0);
    tell(world, uid, ELASTIC_EXITED, 0);
    if (worker->request != 0 && !early)
        tell(world, uid, ELASTIC_ASK_DROPPED, 0);
    tell(world, uid, ELASTIC_FINISHED, worker->finish_delay_ms);
}

/* A newcomer is alone until it comes to the rendezvous. */
static void import(struct world *world, int uid, enum trap trap)
{
    struct sim_worker *worker = &world->workers[uid];
    const bool slow = trap == TRAP_SLOW || rng_chance(&worker->rng, 20);
    if (worker->registers)
        in_ms(world, uid, TASK_CAN_JOIN,
              slow ? rng_between(&worker->rng, 3000, 40000) : rng_between(&worker->rng, 10, 3000),
              0, 0);
}

static void spawn(struct world *world, int uid, uint32_t epoch)
{
    struct sim_worker *worker = &world->workers[uid];
    struct sim_host *host = &world->hosts[worker->host];
    enum trap trap = TRAP_NONE;
    if (host->trap_count > 0)
        trap = (enum trap)host->traps[--host->trap_count];
    worker->alive = true;
    if (trap == TRAP_SPAWN_FAILS) {
        worker_end(world, uid, 127);
        return;
    }
    worker->spawned = true;
    tell(world, uid, ELASTIC_STARTED,
         trap == TRAP_SLOW ? rng_between(&worker->rng, 300, 1500)
                           : rng_between(&worker->rng, 1, 30));
    spring_trap(world, worker, trap);
    if (world->now_ms < world->crashy_until_ms)
        in_ms(world, uid, TASK_END, rng_between(&worker->rng, 0, 1000), 0, 1);
    if (worker->registers && !worker->newcomer)
        in_ms(world, uid, TASK_REGISTER,
              trap == TRAP_SLOW ? rng_between(&worker->rng, 3000, 20000)
                                : rng_between(&worker->rng, 10, 1000),
              0, 0);
    if (worker->newcomer)
        import(world, uid, trap);
    else if (!worker->hung)
        comm_join(world, uid, epoch);
}

static void can_join(struct world *world, int uid)
{
    struct sim_worker *worker = &world->workers[uid];
    if (!worker->alive || worker->hung)
        return;
    worker->can_join = true;
    tell(world, uid, ELASTIC_CAN_JOIN, 0);
}

static void peer_failed(struct world *world, int uid, uint32_t epoch)
{
    struct sim_worker *worker = &world->workers[uid];
    if (!worker->alive || worker->hung || worker->comm != epoch || worker->request != 0)
        return;
    if (epoch != world->comm.epoch || !world->comm.steady) {
        worker_end(world, uid, worker->registers ? -6 : 1);
        return;
    }
    switch (worker->reaction) {
    case REACTION_ASK: ask(world, uid); break;
    case REACTION_EXIT_1: worker_end(world, uid, 1); break;
    case REACTION_EXIT_0: worker_end(world, uid, 0); break;
    case REACTION_ABORT: worker_end(world, uid, -6); break;
    default:
        worker->hung = true;
        if (world->benign) /* somebody looks after it */
            in_ms(world, uid, TASK_END, rng_between(&worker->rng, 100000, 200000), 0, 1);
        break;
    }
}

static void setup_limit(struct world *world, int uid, uint32_t epoch)
{
    const struct sim_worker *worker = &world->workers[uid];
    const bool steady = world->comm.epoch == epoch && world->comm.steady;
    if (worker->alive && !worker->hung && worker->comm == epoch && !steady)
        worker_end(world, uid, worker->registers ? -6 : 1);
}

static void joined(struct world *world, const struct task *task)
{
    struct sim_worker *worker = &world->workers[task->uid];
    if (!worker->alive || worker->request != task->value)
        return;
    worker->request = 0;
    if (worker->can_join && worker->registers && !worker->registered)
        in_ms(world, task->uid, TASK_REGISTER, rng_between(&worker->rng, 10, 1000), 0, 0);
    if (task->epoch == 0)
        in_ms(world, task->uid, TASK_END, rng_between(&worker->rng, 1, 300), 0, -6);
    else if (!worker->hung)
        comm_join(world, task->uid, task->epoch);
}

static void commit(struct world *world, uint32_t epoch)
{
    struct sim_comm *comm = &world->comm;
    if (comm->epoch != epoch || !comm->steady || comm->broken || comm->done)
        return;
    comm_stop(world);
    for (int uid = 0; uid < world->worker_count; uid++) {
        struct sim_worker *worker = &world->workers[uid];
        if (worker->alive && worker->comm == epoch)
            in_ms(world, uid, TASK_ASK, rng_between(&worker->rng, 0, 100), 0, 0);
    }
}

static void notified(struct world *world, int uid)
{
    const struct sim_worker *worker = &world->workers[uid];
    struct sim_comm *comm = &world->comm;
    if (!worker->alive || worker->hung || worker->comm != comm->epoch)
        return;
    if (comm->steady)
        comm_commit_later(world);
    else
        comm->notified = true;
}

static void work_done(struct world *world, uint32_t epoch)
{
    struct sim_comm *comm = &world->comm;
    if (comm->epoch != epoch || !comm->steady || comm->broken || comm->done)
        return;
    for (int uid = 0; uid < world->worker_count; uid++) {
        struct sim_worker *worker = &world->workers[uid];
        if (worker->alive && worker->comm == epoch && worker->hung) {
            /* the others wait in a collective, until somebody looks after this one */
            in_ms(world, uid, TASK_END, 20000, 0, 1);
            return;
        }
    }
    comm->done = true;
    world_story(world, "   the work is done");
    for (int uid = 0; uid < world->worker_count; uid++) {
        struct sim_worker *worker = &world->workers[uid];
        if (!worker->alive || worker->comm != epoch)
            continue;
        const bool slow = rng_chance(&worker->rng, 5);
        in_ms(world, uid, TASK_END, rng_between(&worker->rng, 0, slow ? 15000 : 600), 0, 0);
    }
}

static void term(struct world *world, int uid, int64_t grace_ms)
{
    struct sim_worker *worker = &world->workers[uid];
    if (!worker->alive)
        return;
    static const int64_t codes[] = {-15, -15, -15, 143, 1, 0};
    const bool obeys = grace_ms > 0 && !worker->stubborn && !worker->hung;
    const int64_t takes_ms = rng_between(&worker->rng, 0, 400);
    if (obeys && takes_ms < grace_ms)
        in_ms(world, uid, TASK_END, takes_ms, 0, codes[rng_below(&worker->rng, 6)]);
    else
        in_ms(world, uid, TASK_END, grace_ms, 0, -9);
}

static void register_it(struct world *world, int uid)
{
    struct sim_worker *worker = &world->workers[uid];
    if (!worker->alive || worker->hung || worker->registered || !worker->registers)
        return;
    worker->registered = true;
    tell(world, uid, ELASTIC_REGISTERED, 0);
}

void workers_task(struct world *world, const struct task *task)
{
    const int uid = task->uid;
    struct sim_worker *worker = &world->workers[uid];
    /* what the driver has sent reaches nobody where no agent lives */
    const bool reached = task->link == 0 || world->hosts[task->host].agent;
    if (!reached)
        return;
    switch (task->kind) {
    case TASK_SPAWN: spawn(world, uid, task->epoch); break;
    case TASK_REGISTER: register_it(world, uid); break;
    case TASK_CAN_JOIN: can_join(world, uid); break;
    case TASK_PEER_FAILED: peer_failed(world, uid, task->epoch); break;
    case TASK_SETUP_LIMIT: setup_limit(world, uid, task->epoch); break;
    case TASK_JOIN: joined(world, task); break;
    case TASK_NOTIFIED: notified(world, uid); break;
    case TASK_COMMIT: commit(world, task->epoch); break;
    case TASK_ASK:
        if (worker->alive && !worker->hung && worker->request == 0)
            ask(world, uid);
        break;
    case TASK_TERM: term(world, uid, task->value); break;
    case TASK_END: worker_end(world, uid, task->value); break;
    case TASK_WORK_DONE: work_done(world, task->epoch); break;
    default: break;
    }
}

bool worker_may_ask(struct world *world, uint64_t number)
{
    const struct sim_request *request = &world->requests[number - 1];
    if (request->uid < 0 || request->epoch == world->workers[request->uid].epoch)
        return true;
    /* The one before it was dropped, and answered all the same: nobody can tell now whom this local
     * rank means. Such a client gives up after some tries. */
    worker_end(world, request->uid, -6);
    return false;
}

void worker_answered(struct world *world, int uid, int request)
{
    const struct sim_worker *worker = &world->workers[uid];
    host_receive(world, worker->host,
                 (struct task){.kind = TASK_JOIN,
                               .uid = uid,
                               .epoch = worker->removed ? 0 : worker->epoch,
                               .value = request});
}

/* Faults of workers. */

/* The held request is given up, and repeated. */
static void drop_ask(struct world *world, int uid)
{
    struct sim_worker *worker = &world->workers[uid];
    if (worker->request == 0 || !world->hosts[worker->host].agent)
        return;
    struct sim_request *old = &world->requests[worker->request - 1];
    if (!old->told || old->answered || world->request_count == WORLD_REQUESTS)
        return;
    old->dropped = true;
    const bool dropped_first = rng_chance(&worker->rng, 60);
    if (dropped_first)
        tell(world, uid, ELASTIC_ASK_DROPPED, 0);
    const int old_number = worker->request;
    world->requests[world->request_count] =
        (struct sim_request){.uid = uid, .host = worker->host, .epoch = worker->epoch};
    worker->request = ++world->request_count;
    tell(world, uid, ELASTIC_ASKED, dropped_first ? rng_between(&worker->rng, 0, 500) : 0);
    const int new_number = worker->request;
    worker->request = old_number;
    if (!dropped_first)
        tell(world, uid, ELASTIC_ASK_DROPPED, 0);
    worker->request = new_number;
}

static void fault_of(struct world *world, int uid, const struct fault *fault)
{
    struct sim_worker *worker = &world->workers[uid];
    switch (fault->kind) {
    case FAULT_CRASH: worker_end(world, uid, fault->value); break;
    case FAULT_EXIT_0: worker_end(world, uid, 0); break;
    case FAULT_HANG:
        worker->hung = true;
        hangs_look_later(world);
        break;
    case FAULT_STUBBORN: worker->stubborn = true; break;
    case FAULT_REACTION:
        if (worker->registers || fault->value != REACTION_ASK)
            worker->reaction = (enum reaction)fault->value;
        break;
    case FAULT_ASK:
        if (worker->comm == 0 || worker->request != 0 || worker->hung || !world->comm.steady)
            break;
        if (worker->registers)
            ask(world, uid);
        else
            worker_end(world, uid, 1);
        break;
    default: drop_ask(world, uid); break;
    }
}

void workers_fault(struct world *world, const struct fault *fault)
{
    int found[WORLD_SEATS], count = 0;
    for (int uid = 0; uid < world->worker_count && count < WORLD_SEATS; uid++) {
        const struct sim_worker *worker = &world->workers[uid];
        const bool fits = fault->kind != FAULT_DROP_ASK || worker->request != 0;
        if (worker->alive && fits)
            found[count++] = uid;
    }
    if (count > 0)
        fault_of(world, found[fault->host % count], fault);
}

/* What hangs now does not do so for ever: somebody looks after it. */
void workers_benign(struct world *world)
{
    for (int uid = 0; uid < world->worker_count; uid++) {
        struct sim_worker *worker = &world->workers[uid];
        if (worker->alive && worker->hung)
            in_ms(world, uid, TASK_END, rng_between(&worker->rng, 100000, 200000), 0, 1);
    }
}
