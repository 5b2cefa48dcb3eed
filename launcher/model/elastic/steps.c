/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include "base/mem.h"
#include "model/elastic/newcomers.h"
#include "model/elastic/placement.h"

/* Starts newcomers beside the running epoch, for slots that it does not use. */

static bool can_stay(const struct elastic *e, const struct elastic_worker *worker)
{
    return worker->state == ELASTIC_WORKER_RUNNING &&
           elastic_hosts_slot_usable(&e->hosts.items[worker->host], worker->slot);
}

/* Now is a good time: every member of the running epoch can stay, and the newcomers of an earlier
 * batch have joined or ended. */
static bool recruit_may(const struct elastic *e)
{
    if (elastic_newcomers_any(e) || e->workers.in_state[ELASTIC_WORKER_DISMISSED] > 0)
        return false;
    for (int r = 0; r < e->plan.size; r++)
        if (!can_stay(e, &e->workers.items[e->plan.members[r].seat]))
            return false;
    return true;
}

static void recruit_make(struct elastic *e, const struct elastic_choice *choice)
{
    struct elastic_survivor *members AUTO_FREE = mem_array((size_t)e->plan.size, sizeof(*members));
    for (int r = 0; r < e->plan.size; r++)
        members[r] = (struct elastic_survivor){e->plan.members[r].seat, e->plan.members[r].host,
                                               e->plan.members[r].slot, r};
    struct elastic_placement placement;
    elastic_choice_place(e, choice, members, e->plan.size, &placement);
    elastic_newcomers_begin(e, &placement);
    elastic_placement_clear(&placement);
}

/* The steps. */

/* Every worker has asked or ended. */
static bool all_agree(const struct elastic *e)
{
    const int *in = e->workers.in_state;
    return in[ELASTIC_WORKER_STARTING] + in[ELASTIC_WORKER_RUNNING] + in[ELASTIC_WORKER_KILLED] +
               in[ELASTIC_WORKER_REMOVED] ==
           0;
}

/* The first epoch takes in the hosts that are being connected to, but not for long, and before the
 * job gives up. */
static bool must_gather(struct elastic *e, const struct elastic_choice *choice)
{
    bool can_be_more = e->config.max_np == 0 || choice->size < e->config.max_np;
    if (e->started > 0 || !can_be_more || e->hosts.in_state[ELASTIC_HOST_CALLING] == 0)
        return false;
    if (e->gather_until_ms < 0) {
        int64_t until = e->now_ms + e->config.gather_ms, end = e->timers[ELASTIC_TIMER_WAIT] - 1;
        e->gather_until_ms = until < end ? until : end;
        e->timers[ELASTIC_TIMER_GATHER] = e->gather_until_ms;
        if (e->config.gather_ms > e->config.grow_delay_ms)
            elastic_say(e, ELASTIC_NOTICE,
                        "%d slot%s enough to start; waiting %lld s for more hosts", choice->size,
                        choice->size == 1 ? " is" : "s are",
                        (long long)(e->gather_until_ms - e->now_ms) / 1000);
    }
    return e->now_ms < e->gather_until_ms;
}

static int wanted(const struct elastic *e)
{
    int least = e->started == 0 ? e->config.np : e->config.min_np;
    return e->config.max_np > 0 && e->config.max_np < least ? e->config.max_np : least;
}

/* The survivors suffice: they go on at once, without new workers. */
static bool goes_on(const struct elastic *e)
{
    return e->config.early && elastic_members_survivors(e) >= wanted(e);
}

/* False: there were newcomers, for a plan that cannot come true. They end first. */
static bool has_no_newcomers(struct elastic *e)
{
    if (elastic_newcomers_any(e))
        elastic_newcomers_dismiss(e);
    return e->workers.in_state[ELASTIC_WORKER_DISMISSED] == 0;
}

/* Those that wait at the rendezvous keep their memory, if others can take the places of those that
 * have ended. Else nobody can come to them. */
static void step_held(struct elastic *e)
{
    if (!elastic_members_can_repair(e)) {
        for (int seat = 0; seat < e->workers.count; seat++)
            if (e->workers.items[seat].state == ELASTIC_WORKER_HELD)
                elastic_change_stuck(e, seat);
        e->state = ELASTIC_AGREEING; /* until they have ended */
    } else if (has_no_newcomers(e) && !elastic_verdict_reset_limit(e)) {
        elastic_members_repair(e);
    }
}

/* The next machine of a host's name can come when those that cannot stay there have gone. */
static void let_leave(struct elastic *e)
{
    if (elastic_members_survivors(e) == 0)
        elastic_change_nobody_left(e);
    else
        elastic_members_let_leave(e);
}

static void step_waiting(struct elastic *e)
{
    bool rejoins = e->change.open && e->change.mode == ELASTIC_REJOIN;
    if (e->workers.in_state[ELASTIC_WORKER_HELD] > 0) {
        step_held(e);
        return;
    }
    if (rejoins && e->workers.in_state[ELASTIC_WORKER_ASKED] == 0) {
        elastic_change_nobody_left(e);
        return;
    }
    bool early = rejoins && goes_on(e);
    bool join = early && elastic_members_can_join(e);
    if (!early && !has_no_newcomers(e))
        return;
    struct elastic_choice choice;
    elastic_choice_make(e, &choice);
    if (early)
        choice.size = elastic_members_survivors(e);
    if (choice.size < wanted(e)) {
        e->gather_until_ms = -1;
        e->timers[ELASTIC_TIMER_GATHER] = ELASTIC_OFF;
        if (rejoins && elastic_members_hold_up(e))
            let_leave(e);
    } else if (!must_gather(e, &choice) && (join || !elastic_verdict_reset_limit(e))) {
        if (rejoins && elastic_members_survivors(e) == 0)
            elastic_change_nobody_left(e);
        else if (join)
            elastic_members_join(e);
        else
            elastic_members_prepare(e, &choice);
    }
    elastic_choice_clear(&choice);
}

static void step_running(struct elastic *e)
{
    if (!e->resumed && e->workers.in_state[ELASTIC_WORKER_STARTING] == 0)
        elastic_members_resume(e);
    if (e->done == e->plan.size)
        elastic_verdict_success(e);
}

static void step_agreeing(struct elastic *e)
{
    if (all_agree(e))
        elastic_change_agreed(e);
}

static void step_stopping(struct elastic *e)
{
    if (e->workers.taken > 0)
        return;
    e->timers[ELASTIC_TIMER_STOP] = ELASTIC_OFF;
    e->change.agreed_ms = e->now_ms;
    e->release_again = true;
    e->state = ELASTIC_WAITING;
}

static void step_ending(struct elastic *e)
{
    if (e->workers.taken > 0)
        return;
    elastic_emit(e, ELASTIC_OVER);
    e->state = ELASTIC_DONE;
}

static void (*const steps[ELASTIC_STATES])(struct elastic *e) = {
    [ELASTIC_WAITING] = step_waiting,   [ELASTIC_RUNNING] = step_running,
    [ELASTIC_AGREEING] = step_agreeing, [ELASTIC_STOPPING] = step_stopping,
    [ELASTIC_ENDING] = step_ending,
};

/* Slots that a failure has left free are filled at once. */
static void grow_when_due(struct elastic *e, const struct elastic_choice *choice)
{
    if (e->grow_due_ms < 0) {
        e->grow_due_ms = e->now_ms + (e->shrunk && e->config.early ? 0 : e->config.grow_delay_ms);
        e->timers[ELASTIC_TIMER_GROW] = e->grow_due_ms;
    }
    if (e->now_ms < e->grow_due_ms)
        return;
    bool beside = e->config.early && elastic_change_rejoins(e);
    e->timers[ELASTIC_TIMER_GROW] = ELASTIC_OFF;
    if (beside && !recruit_may(e))
        return; /* what is missing brings us back */
    e->grow_due_ms = -1;
    e->shrunk = false;
    if (beside)
        recruit_make(e, choice);
    else
        elastic_change_grow(e, choice->size);
}

/* Whether more workers could run than do, or than rank 0 was notified of. */
static void look_for_growth(struct elastic *e)
{
    e->grow_again = false;
    bool beside = e->config.early && elastic_change_rejoins(e);
    bool limit = elastic_verdict_at_limit(e) && !(beside && e->refill);
    bool full = e->config.max_np > 0 && e->plan.size >= e->config.max_np;
    if (!e->resumed || e->done > 0 || limit || full || elastic_newcomers_any(e))
        return;
    struct elastic_choice choice;
    elastic_choice_make(e, &choice);
    if (choice.size <= e->plan.size || choice.size <= e->change.announced) {
        e->grow_due_ms = -1; /* what had come has gone again */
        e->shrunk = e->refill = false;
        e->timers[ELASTIC_TIMER_GROW] = ELASTIC_OFF;
    } else {
        grow_when_due(e, &choice);
    }
    elastic_choice_clear(&choice);
}

/* Rank 0 is notified only when all newcomers can join. */
static void announce_newcomers(struct elastic *e)
{
    bool complete = elastic_newcomers_complete(e);
    bool may = e->config.early && e->resumed && e->done == 0 && elastic_change_rejoins(e);
    if (may && complete && !e->change.grows)
        elastic_change_grow(e, e->newcomers.plan.size);
    else if (may && !complete && e->change.grows)
        elastic_change_withdraw(e);
}

static void notify_rank_0(struct elastic *e)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, e->plan.members[0].seat);
    if (worker == NULL || worker->rank != 0 || worker->state != ELASTIC_WORKER_RUNNING ||
        !worker->registered)
        return; /* its REGISTERED brings us back */
    struct elastic_change *change = &e->change;
    change->notify = false;
    change->pause_ms = change->pause_ms == 0 ? e->config.renotify_ms / 10 : 2 * change->pause_ms;
    if (change->pause_ms > e->config.renotify_ms)
        change->pause_ms = e->config.renotify_ms;
    elastic_emit(e, ELASTIC_NOTIFY)->seat = e->plan.members[0].seat;
    e->timers[ELASTIC_TIMER_NOTIFY] = e->now_ms + change->pause_ms;
}

static int slots_found(const struct elastic *e)
{
    struct elastic_choice choice;
    elastic_choice_make(e, &choice);
    int size = choice.size;
    elastic_choice_clear(&choice);
    return size;
}

/* There are enough slots, and no plan is made before the newcomers have ended. They have limits of
 * their own. */
static bool waits_for_newcomers(const struct elastic *e)
{
    return e->workers.in_state[ELASTIC_WORKER_DISMISSED] > 0 && slots_found(e) >= wanted(e);
}

static void wait_for_slots(struct elastic *e)
{
    if (e->state != ELASTIC_WAITING || waits_for_newcomers(e))
        e->timers[ELASTIC_TIMER_WAIT] = e->timers[ELASTIC_TIMER_SHORT] = ELASTIC_OFF;
    else if (e->timers[ELASTIC_TIMER_WAIT] == ELASTIC_OFF)
        elastic_clock_wait(e, e->now_ms);
}

/* At the start not before all that are called have come or failed. */
static void say_waiting(struct elastic *e)
{
    bool calls = e->hosts.in_state[ELASTIC_HOST_CALLING] > 0 || e->listing == 0;
    bool may_come = e->started == 0 && calls;
    if (e->state != ELASTIC_WAITING || e->waiting_said || may_come)
        return;
    int size = slots_found(e);
    if (size >= wanted(e))
        return; /* it gathers */
    e->waiting_said = true;
    elastic_say(e, ELASTIC_WARNING, "waiting for %d more slot%s: %d found, at least %d needed",
                wanted(e) - size, elastic_plural(wanted(e) - size), size, wanted(e));
}

/* Another change may have used up the limit while they started. */
static void check_newcomers(struct elastic *e)
{
    elastic_newcomers_check(e);
    if (e->state == ELASTIC_RUNNING && elastic_newcomers_any(e) && elastic_verdict_at_limit(e) &&
        !e->refill)
        elastic_newcomers_dismiss(e);
}

void elastic_steps_settle(struct elastic *e)
{
    enum elastic_state before;
    do {
        check_newcomers(e);
        do {
            before = e->state;
            if (steps[before] != NULL)
                steps[before](e);
        } while (e->state != before);
        if (e->state == ELASTIC_RUNNING)
            announce_newcomers(e);
        if (e->state == ELASTIC_RUNNING && e->grow_again)
            look_for_growth(e); /* may stop the workers for a restart */
    } while (e->state != before);
    if (e->state == ELASTIC_ENDING || e->state == ELASTIC_DONE)
        return;
    wait_for_slots(e);
    if (e->state == ELASTIC_RUNNING && e->change.notify)
        notify_rank_0(e);
    /* an agent that is stopping its crew gets no further order */
    if (e->release_again && e->state != ELASTIC_STOPPING) {
        e->release_again = false;
        if (e->hosts.in_state[ELASTIC_HOST_DRAINING] > 0)
            elastic_departures_finish(e);
    }
    if (e->call_again) {
        e->call_again = false;
        elastic_calls_make(e);
    }
    say_waiting(e);
}
