/* SPDX-License-Identifier: Apache-2.0 */
/* A plan is right: computed again here, by brute force and from what the world knows. */
#include "sim/world.h"

/* The member of `plan` on this seat, or NULL. */
static const struct elastic_member *find(const struct sim_plan *plan, int seat)
{
    for (int m = 0; m < plan->size; m++) {
        if (plan->members[m].seat == seat)
            return &plan->members[m];
    }
    return NULL;
}

static int first_rank(const struct sim_plan *plan, int host)
{
    for (int m = 0; m < plan->size; m++) {
        if (plan->members[m].host == host)
            return m;
    }
    return plan->size;
}

/* Cross ranks: among the hosts that have this local rank, in the order of their first rank. */
static void check_numbers(struct world *world, const struct sim_plan *plan)
{
    for (int m = 0; m < plan->size; m++) {
        const struct elastic_member *member = &plan->members[m];
        int local_rank = 0, local_size = 0, cross_rank = 0, cross_size = 0;
        if (member->rank != m)
            world_problem(world, INV_RANKS, "member %d of epoch %u has rank %d", m, plan->epoch,
                          member->rank);
        for (int o = 0; o < plan->size; o++) {
            const struct elastic_member *other = &plan->members[o];
            if (other->host == member->host) {
                local_size++;
                local_rank += other->slot < member->slot;
            }
            if (other->local_rank == member->local_rank) {
                cross_size++;
                cross_rank += first_rank(plan, other->host) < first_rank(plan, member->host);
            }
        }
        if (member->local_rank != local_rank || member->local_size != local_size)
            world_problem(
                world, INV_LOCAL, "rank %d of epoch %u has local rank %d of %d instead of %d of %d",
                m, plan->epoch, member->local_rank, member->local_size, local_rank, local_size);
        if (member->cross_rank != cross_rank || member->cross_size != cross_size)
            world_problem(
                world, INV_LOCAL, "rank %d of epoch %u has cross rank %d of %d instead of %d of %d",
                m, plan->epoch, member->cross_rank, member->cross_size, cross_rank, cross_size);
    }
}

static void check_hosts(struct world *world, const struct sim_plan *plan)
{
    int count = 0;
    for (int m = 0; m < plan->size; m++) {
        bool seen = false;
        for (int o = 0; o < m; o++)
            seen |= plan->members[o].host == plan->members[m].host;
        if (seen)
            continue;
        if (count >= plan->host_count || plan->hosts[count] != plan->members[m].host)
            world_problem(world, INV_LOCAL, "host %d of epoch %u is not that of rank %d", count,
                          plan->epoch, m);
        count++;
    }
    if (count != plan->host_count)
        world_problem(world, INV_LOCAL, "epoch %u has %d hosts, not %d", plan->epoch, count,
                      plan->host_count);
}

static void check_slots(struct world *world, const struct sim_plan *plan)
{
    for (int m = 0; m < plan->size; m++) {
        const struct elastic_member *member = &plan->members[m];
        const struct sim_host *host = &world->hosts[world->by_number[member->host]];
        if (member->slot < 0 || (member->is_new && member->slot >= host->told_slots))
            world_problem(world, INV_SLOT, "rank %d of epoch %u has slot %d of %d on %s", m,
                          plan->epoch, member->slot, host->told_slots, host->name);
        if (member->local_size > host->told_slots)
            world_problem(world, INV_SLOT, "%d workers on the %d slots of %s", member->local_size,
                          host->told_slots, host->name);
        for (int o = 0; o < m; o++) {
            if (plan->members[o].host == member->host && plan->members[o].slot == member->slot)
                world_problem(world, INV_SLOT, "ranks %d and %d of epoch %u are in one slot", o, m,
                              plan->epoch);
            if (plan->members[o].seat == member->seat)
                world_problem(world, INV_SEAT, "ranks %d and %d of epoch %u have one seat", o, m,
                              plan->epoch);
        }
    }
}

/* It has reached the failure limit beyond doubt and must not be used. While restarts are counted
 * they decide, not the failures. */
static bool struck_out(const struct world *world, const struct sim_host *host, int row)
{
    const struct elastic_config *config = &world->schedule->config;
    const bool counted = config->mode != ELASTIC_REJOIN && config->max_restarts >= 0;
    return (!counted || row == WORLD_SLOTS) && !world->jumped &&
           host->blacklisted_until_ms[row] > world->core_last_ms;
}

static void check_new(struct world *world, const struct elastic_member *member)
{
    const int h = world->by_number[member->host];
    const struct sim_host *host = &world->hosts[h];
    const struct elastic_host_facts facts = core_host(&world->core, member->host);
    if (member->seat < 0 || member->seat >= WORLD_SEATS) {
        world_problem(world, INV_WORLD, "seat %d", member->seat);
        return;
    }
    if (!host->up || facts.state != ELASTIC_HOST_UP)
        world_problem(world, INV_HOST, "a new worker on %s, which is %s", host->name,
                      elastic_host_state_name(facts.state));
    if (!host->told_listed || host->told_draining)
        world_problem(world, INV_HOST, "a new worker on %s, which is %s", host->name,
                      host->told_listed ? "draining" : "not listed");
    if (facts.blacklisted_until_ms > world->core_last_ms)
        world_problem(world, INV_HOST, "a new worker on %s, which is blacklisted", host->name);
    if (struck_out(world, host, WORLD_SLOTS))
        world_problem(world, INV_HOST, "a new worker on %s, which was lost too often", host->name);
    if (member->slot < WORLD_SLOTS && struck_out(world, host, member->slot))
        world_problem(world, INV_HOST, "a new worker in slot %d of %s, which crashed too often",
                      member->slot, host->name);
    if (world->seats[member->seat] != 0)
        world_problem(world, INV_SEAT, "a new worker on seat %d, which is taken", member->seat);
}

static void check_survivor(struct world *world, const struct elastic_member *member)
{
    const struct sim_worker *worker = world_worker(world, member->seat);
    const struct elastic_host_facts facts = core_host(&world->core, member->host);
    if (worker != NULL && worker->told_hung)
        world_problem(world, INV_HUNG, "seat %d hangs, and is a member of the next epoch",
                      member->seat);
    if (!worker_is_live(worker)) {
        world_problem(world, INV_SEAT, "seat %d survives, but nobody lives there", member->seat);
        return;
    }
    if (worker->host != world->by_number[member->host] || worker->slot != member->slot)
        world_problem(world, INV_SLOT, "seat %d has moved to another host or slot", member->seat);
    if (worker->newcomer && !worker->told_can_join)
        world_problem(world, INV_QUIET, "seat %d joins, but it cannot yet", member->seat);
    if (worker->kill_sent || worker->removed)
        world_problem(world, INV_SEAT, "seat %d survives, but it was ended", member->seat);
    if (facts.state != ELASTIC_HOST_UP)
        world_problem(world, INV_HOST, "a survivor stays on a host that is %s",
                      elastic_host_state_name(facts.state));
    if (!worker->told_ask && !worker->newcomer && !worker->told_held)
        world_problem(world, INV_PREPARE, "seat %d survives, but it has not asked", member->seat);
}

/* It starts now, or joins. */
static bool is_new(const struct sim_plan *plan, int m)
{
    return plan->members[m].is_new || plan->joins[m];
}

static void check_order(struct world *world, const struct sim_plan *plan)
{
    int last_old = -1, survivors = 0;
    for (int m = 0; m < plan->size; m++) {
        if (is_new(plan, m))
            continue;
        survivors++;
        const struct elastic_member *before = find(&world->started, plan->members[m].seat);
        if (before == NULL) {
            world_problem(world, INV_ORDER, "seat %d survives, but was not in epoch %u",
                          plan->members[m].seat, world->started.epoch);
            return;
        }
        if (before->rank < last_old)
            world_problem(world, INV_ORDER, "old rank %d comes behind old rank %d in epoch %u",
                          before->rank, last_old, plan->epoch);
        last_old = before->rank;
    }
    if (survivors > 0 && is_new(plan, 0))
        world_problem(world, INV_ZERO, "rank 0 of epoch %u is new, but there are survivors",
                      plan->epoch);
    if (plan->fresh && survivors > 0)
        world_problem(world, INV_RANKS, "epoch %u is fresh, but has survivors", plan->epoch);
}

/* Rejoin: behind the last survivor of its host, or at the end. */
static void check_placing_among(struct world *world, const struct sim_plan *plan, int m)
{
    bool has_survivor = false, survivor_after = false;
    for (int o = 0; o < plan->size; o++) {
        const bool survivor = !is_new(plan, o);
        const bool same_host = plan->members[o].host == plan->members[m].host;
        has_survivor |= survivor && same_host;
        survivor_after |= survivor && o > m;
    }
    if (!has_survivor) {
        if (survivor_after)
            world_problem(world, INV_PLACING, "new rank %d of epoch %u is not at the end", m,
                          plan->epoch);
        return;
    }
    int at = m - 1;
    while (at >= 0 && is_new(plan, at) && plan->members[at].host == plan->members[m].host)
        at--;
    if (at < 0 || plan->members[at].host != plan->members[m].host)
        world_problem(world, INV_PLACING, "new rank %d of epoch %u is not behind those of its host",
                      m, plan->epoch);
    for (int o = m + 1; o < plan->size; o++) {
        if (!is_new(plan, o) && plan->members[o].host == plan->members[m].host)
            world_problem(world, INV_PLACING, "new rank %d of epoch %u is before a survivor", m,
                          plan->epoch);
    }
}

/* All new: by host and slot, and hosts that stay keep their order. */
static void check_placing_fresh(struct world *world, const struct sim_plan *plan)
{
    for (int m = 1; m < plan->size; m++) {
        const struct elastic_member *before = &plan->members[m - 1];
        const struct elastic_member *member = &plan->members[m];
        bool earlier = false;
        for (int o = 0; o < m; o++)
            earlier |= plan->members[o].host == member->host;
        if (before->host == member->host ? before->slot >= member->slot : earlier)
            world_problem(world, INV_PLACING, "rank %d of epoch %u is not by host and slot", m,
                          plan->epoch);
    }
    int last = -1;
    for (int i = 0; world->started.fresh && i < plan->host_count; i++) {
        int was = -1;
        for (int o = 0; o < world->started.host_count; o++) {
            if (world->started.hosts[o] == plan->hosts[i] &&
                world->hosts[world->by_number[plan->hosts[i]]].stays)
                was = o;
        }
        if (was < 0)
            continue;
        if (was < last)
            world_problem(world, INV_PLACING, "hosts that stay have changed places in epoch %u",
                          plan->epoch);
        last = was;
    }
}

static void check_size(struct world *world, const struct sim_plan *plan)
{
    const struct elastic_config *config = &world->schedule->config;
    const int least =
        world->started_count == 0 && config->np > config->min_np ? config->np : config->min_np;
    if (plan->size < least)
        world_problem(world, INV_SIZE, "epoch %u has %d workers, at least %d are needed",
                      plan->epoch, plan->size, least);
    if (config->max_np > 0 && plan->size > config->max_np)
        world_problem(world, INV_SIZE, "epoch %u has %d workers, at most %d may be", plan->epoch,
                      plan->size, config->max_np);
    if (plan->restart_count < world->started.restart_count)
        world_problem(world, INV_FACTS, "the restart count went back from %d to %d",
                      world->started.restart_count, plan->restart_count);
    if (plan->fresh && world->started_count > 0 &&
        plan->restart_count <= world->started.restart_count)
        world_problem(world, INV_FACTS, "all start anew in epoch %u, which is not counted",
                      plan->epoch);
}

static void check_members(struct world *world, const struct sim_plan *plan)
{
    bool all_new = true;
    for (int m = 0; m < plan->size && world->broken == INV_NONE; m++) {
        all_new &= plan->members[m].is_new;
        if (plan->members[m].is_new)
            check_new(world, &plan->members[m]);
        else
            check_survivor(world, &plan->members[m]);
    }
    if (world->broken != INV_NONE)
        return;
    check_order(world, plan);
    for (int m = 0; m < plan->size && !all_new && !plan->repairs; m++) {
        if (is_new(plan, m))
            check_placing_among(world, plan, m);
    }
    if (all_new)
        check_placing_fresh(world, plan);
}

/* Whoever has asked, and may stay where it is, is in the plan. */
static void check_kept(struct world *world, const struct sim_plan *plan)
{
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        if (!worker_is_live(worker) || !worker->told_ask || worker->kill_sent || worker->removed)
            continue;
        const struct sim_host *host = &world->hosts[worker->host];
        const struct elastic_host_facts facts = core_host(&world->core, host->number);
        const bool may_stay = facts.state == ELASTIC_HOST_UP && host->told_listed &&
                              worker->slot < host->told_slots && facts.blacklisted_until_ms == 0;
        if (may_stay && find(plan, seat) == NULL)
            world_problem(world, INV_KEEP, "seat %d has asked, but is not in epoch %u", seat,
                          plan->epoch);
    }
}

static bool same_numbers(const struct elastic_member *a, const struct elastic_member *b)
{
    return a->seat == b->seat && a->rank == b->rank && a->local_rank == b->local_rank &&
           a->local_size == b->local_size && a->cross_rank == b->cross_rank &&
           a->cross_size == b->cross_size;
}

/* Either all newcomers are in the plan, with the numbers that they were started with, or none. */
static void check_joining(struct world *world, const struct sim_plan *plan)
{
    int joining = 0, batch = 0;
    for (int m = 0; m < plan->size; m++)
        joining += plan->joins[m];
    if (joining == 0)
        return;
    for (int m = 0; m < world->batch.size; m++) {
        const struct elastic_member *newcomer = &world->batch.members[m];
        if (!newcomer->is_new)
            continue;
        batch++;
        const struct elastic_member *member = find(plan, newcomer->seat);
        if (member == NULL || plan->size != world->batch.size || !same_numbers(newcomer, member))
            world_problem(world, INV_TOGETHER, "seat %d joins epoch %u, but not as it was started",
                          newcomer->seat, plan->epoch);
    }
    if (batch != joining)
        world_problem(world, INV_TOGETHER, "%d of %d newcomers join", joining, batch);
}

/* Survivors that suffice go on at once. */
static void check_early(struct world *world, const struct sim_plan *plan)
{
    const struct elastic_config *config = &world->schedule->config;
    int survivors = 0;
    bool starts = false;
    for (int m = 0; m < plan->size; m++) {
        survivors += !is_new(plan, m);
        starts |= plan->members[m].is_new;
    }
    if (config->early && starts && survivors >= config->min_np && !plan->repairs)
        world_problem(world, INV_EARLY, "%d survivors wait for new workers", survivors);
}

/* The plan of newcomers counts on the members of the running epoch. */
void check_newcomers(struct world *world, const struct sim_plan *batch)
{
    const struct elastic_config *config = &world->schedule->config;
    int members = 0;
    check_numbers(world, batch);
    check_hosts(world, batch);
    check_slots(world, batch);
    if (!config->early)
        world_problem(world, INV_PREPARE, "newcomers, but the survivors are to wait for them");
    if (config->max_np > 0 && batch->size > config->max_np)
        world_problem(world, INV_SIZE, "newcomers for %d workers, at most %d may be", batch->size,
                      config->max_np);
    for (int m = 0; m < batch->size && world->broken == INV_NONE; m++) {
        if (batch->members[m].is_new)
            check_new(world, &batch->members[m]);
        else if (members >= world->started.size ||
                 world->started.members[members++].seat != batch->members[m].seat)
            world_problem(world, INV_ORDER, "newcomers count on seat %d in another place",
                          batch->members[m].seat);
    }
    if (members != world->started.size || batch->members[0].is_new)
        world_problem(world, INV_KEEP, "newcomers count on %d of %d members", members,
                      world->started.size);
}

void check_plan(struct world *world, const struct sim_plan *plan)
{
    for (int m = 0; m < plan->size; m++) {
        if (plan->members[m].host < 0 || plan->members[m].host >= world->number_count) {
            world_problem(world, INV_HOST, "rank %d of epoch %u is on host %d, which there is not",
                          m, plan->epoch, plan->members[m].host);
            return;
        }
    }
    check_size(world, plan);
    check_kept(world, plan);
    check_numbers(world, plan);
    check_hosts(world, plan);
    check_slots(world, plan);
    check_joining(world, plan);
    check_early(world, plan);
    if (world->broken == INV_NONE)
        check_members(world, plan);
}

static bool same_plan(const struct sim_plan *plan, const struct elastic_plan *now)
{
    if (now == NULL || now->epoch != plan->epoch || now->size != plan->size)
        return false;
    for (int m = 0; m < plan->size; m++) {
        if (now->members[m].seat != plan->members[m].seat ||
            now->members[m].slot != plan->members[m].slot ||
            now->members[m].local_rank != plan->members[m].local_rank)
            return false;
    }
    return true;
}

static void check_budgets(struct world *world)
{
    const struct elastic_config *config = &world->schedule->config;
    bool refills = world->may_refill && sim_plan_joins(&world->planned);
    if (config->reset_limit >= 0 && !refills &&
        world->started_count - world->refill_count > config->reset_limit)
        world_problem(world, INV_BUDGET, "%d changes, %d allowed", world->started_count,
                      config->reset_limit);
    /* all that can have happened is crashes */
    if (config->mode == ELASTIC_RESTART && !world->hosts_changed && !world->jumped &&
        !world->loss_told && config->max_restarts >= 0 &&
        world->started_count > config->max_restarts)
        world_problem(world, INV_BUDGET, "%d restarts, %d allowed", world->started_count,
                      config->max_restarts);
}

void check_start(struct world *world)
{
    const struct sim_plan *plan = &world->planned;
    check_budgets(world);
    if (!same_plan(plan, core_plan(&world->core)))
        world_problem(world, INV_PREPARE, "START of another plan than the prepared one");
    check_members(world, plan);
    if (!plan->fresh)
        return;
    if (world->succeeded_told)
        world_problem(world, INV_AGAIN,
                      "all start anew in epoch %u, but a member of epoch %u has "
                      "succeeded",
                      plan->epoch, world->started.epoch);
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        if (worker_is_live(world_worker(world, seat)))
            world_problem(world, INV_PLACE, "epoch %u is fresh, but seat %d still runs",
                          plan->epoch, seat);
    }
}

/* By brute force: nobody has the place of another. */
void check_places(struct world *world)
{
    for (int a = 0; a < WORLD_SEATS; a++) {
        const struct sim_worker *one = world_worker(world, a);
        if (!worker_is_live(one))
            continue;
        for (int b = a + 1; b < WORLD_SEATS; b++) {
            const struct sim_worker *two = world_worker(world, b);
            if (worker_is_live(two) && one->epoch == two->epoch && one->rank == two->rank)
                world_problem(world, INV_PLACE, "seats %d and %d both are rank %d of epoch %u", a,
                              b, one->rank, one->epoch);
        }
    }
}
