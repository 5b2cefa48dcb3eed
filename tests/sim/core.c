/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/core.h"

#include <string.h>

#include "base/mem.h"
#include "sim/invariant.h"

#define CORE_TEXT(name, invariant, text) text,
static const char *const mutation_texts[] = {MUTATION_LIST(CORE_TEXT)};
#undef CORE_TEXT

const char *mutation_text(enum mutation mutation)
{
    return mutation_texts[mutation];
}

void core_create(struct core *core, const struct elastic_config *config, int64_t now_ms,
                 enum mutation mutation)
{
    memset(core, 0, sizeof(*core));
    core->mutation = mutation;
    struct elastic_config used = *config;
    if (mutation == MUTATION_MORE)
        used.max_np = 0;
    if (mutation == MUTATION_BLACKLIST)
        used.failure_limit = 1000000;
    if (mutation == MUTATION_GIVE_IN)
        used.elastic_timeout_ms = 100;
    if (mutation == MUTATION_RESETS)
        used.reset_limit = -1;
    if (mutation == MUTATION_RESTARTS)
        used.max_restarts = -1;
    if (mutation == MUTATION_PATIENT)
        used.elastic_timeout_ms *= 10;
    if (mutation == MUTATION_LAST)
        used.rejoin_timeout_ms *= 10;
    if (mutation == MUTATION_WAIT)
        used.early = false;
    if (mutation == MUTATION_NO_CALL)
        used.reconnect_min_ms = used.reconnect_max_ms = 300000;
    core->elastic = elastic_create(&used, now_ms);
}

void core_destroy(struct core *core)
{
    elastic_actions_destroy(&core->actions);
    elastic_destroy(core->elastic);
}

static void insert(struct core *core, size_t at, struct elastic_action action)
{
    struct elastic_actions *actions = &core->actions;
    if (actions->count == actions->room) {
        actions->room = actions->room * 2 + 8;
        actions->items = mem_resize_array(actions->items, actions->room, sizeof(*actions->items));
    }
    memmove(&actions->items[at + 1], &actions->items[at],
            (actions->count - at) * sizeof(*actions->items));
    actions->items[at] = action;
    actions->count++;
}

static void drop(struct core *core, size_t at)
{
    struct elastic_actions *actions = &core->actions;
    actions->count--;
    memmove(&actions->items[at], &actions->items[at + 1],
            (actions->count - at) * sizeof(*actions->items));
}

static void append(struct core *core, struct elastic_action action)
{
    insert(core, core->actions.count, action);
}

/* After each action of `kind` another one of `added`; with the same contents if that is the same.
 */
static void follow(struct core *core, enum elastic_action_kind kind, struct elastic_action added)
{
    for (size_t i = 0; i < core->actions.count; i++) {
        if (core->actions.items[i].kind != kind)
            continue;
        insert(core, i + 1, added.kind == kind ? core->actions.items[i] : added);
        i++;
    }
}

static void forget(struct core *core, enum elastic_action_kind kind)
{
    for (size_t i = 0; i < core->actions.count; i++) {
        if (core->actions.items[i].kind == kind)
            drop(core, i--);
    }
}

static int other_seat(const struct core *core, int seat)
{
    const struct elastic_plan *plan = elastic_plan(core->elastic);
    for (int m = 0; plan != NULL && m < plan->size; m++) {
        if (plan->members[m].seat != seat)
            return plan->members[m].seat;
    }
    return seat;
}

static void change_seats(struct core *core, enum elastic_action_kind kind, bool removed)
{
    for (size_t i = 0; i < core->actions.count; i++) {
        struct elastic_action *action = &core->actions.items[i];
        if (action->kind == kind && action->seat >= 0)
            action->seat = removed ? -1 : other_seat(core, action->seat);
    }
}

/* Actions that the core has not given. */
static void mutate_added(struct core *core, const struct elastic_event *event)
{
    const struct elastic_plan *plan = elastic_plan(core->elastic);
    const int seats = elastic_seat_count(core->elastic);
    switch (core->mutation) {
    case MUTATION_CALL_ANY:
        for (int h = 0; h < elastic_host_count(core->elastic); h++) {
            if (elastic_host_facts(core->elastic, h).state == ELASTIC_HOST_ABSENT)
                append(core, (struct elastic_action){.kind = ELASTIC_CALL, .host = h});
        }
        break;
    case MUTATION_LET_GO:
        if (event->kind == ELASTIC_STARTED && event->seat < seats)
            append(core, (struct elastic_action){
                             .kind = ELASTIC_LET_GO,
                             .host = elastic_worker_facts(core->elastic, event->seat).host});
        break;
    case MUTATION_GIVE_UP:
        if (plan != NULL)
            follow(core, ELASTIC_RESUMED,
                   (struct elastic_action){.kind = ELASTIC_GIVE_UP, .host = plan->hosts[0]});
        break;
    case MUTATION_KILL:
        if (event->kind == ELASTIC_EXITED)
            append(core, (struct elastic_action){.kind = ELASTIC_KILL, .seat = event->seat});
        break;
    case MUTATION_ANSWER_EARLY:
        for (int s = 0; event->kind == ELASTIC_ASKED && s < seats; s++) {
            const struct elastic_worker_facts facts = elastic_worker_facts(core->elastic, s);
            if (facts.state == ELASTIC_WORKER_ASKED && facts.host == event->host &&
                facts.local_rank == event->local_rank)
                append(core, (struct elastic_action){
                                 .kind = ELASTIC_ANSWER, .seat = s, .request = event->request});
        }
        break;
    case MUTATION_HASTY:
        for (size_t i = 0; plan != NULL && i < core->actions.count; i++) {
            if (core->actions.items[i].kind == ELASTIC_START_NEWCOMERS) {
                append(core, (struct elastic_action){.kind = ELASTIC_NOTIFY,
                                                     .seat = plan->members[0].seat});
                break;
            }
        }
        break;
    case MUTATION_BAD:
        if (event->kind == ELASTIC_HOST_UNREACHED)
            append(core, (struct elastic_action){
                             .kind = ELASTIC_HOST_BAD, .host = event->host, .text = "no route"});
        break;
    case MUTATION_REPEAT:
        if (event->kind == core->last && event->kind == ELASTIC_STARTED)
            append(core, (struct elastic_action){.kind = ELASTIC_SAY, .text = "again"});
        break;
    default: break;
    }
}

static void mutate_actions(struct core *core)
{
    switch (core->mutation) {
    case MUTATION_START_TWICE:
        follow(core, ELASTIC_START, (struct elastic_action){.kind = ELASTIC_START});
        break;
    case MUTATION_NO_WAIT:
        follow(core, ELASTIC_PREPARE, (struct elastic_action){.kind = ELASTIC_START});
        break;
    case MUTATION_CALL_TWICE:
        follow(core, ELASTIC_CALL, (struct elastic_action){.kind = ELASTIC_CALL});
        break;
    case MUTATION_ANSWER_TWICE:
        follow(core, ELASTIC_ANSWER, (struct elastic_action){.kind = ELASTIC_ANSWER});
        break;
    case MUTATION_ANSWER_OTHER: change_seats(core, ELASTIC_ANSWER, false); break;
    case MUTATION_ANSWER_REMOVED: change_seats(core, ELASTIC_ANSWER, true); break;
    case MUTATION_ANSWER_NEVER: forget(core, ELASTIC_ANSWER); break;
    case MUTATION_NO_END: forget(core, ELASTIC_OVER); break;
    case MUTATION_FORGET_KILL: forget(core, ELASTIC_KILL); break;
    case MUTATION_OVER:
        follow(core, ELASTIC_VERDICT, (struct elastic_action){.kind = ELASTIC_OVER});
        break;
    case MUTATION_VERDICT:
        follow(core, ELASTIC_VERDICT, (struct elastic_action){.kind = ELASTIC_VERDICT});
        break;
    case MUTATION_AFTER:
        follow(core, ELASTIC_VERDICT, (struct elastic_action){.kind = ELASTIC_CALL});
        break;
    case MUTATION_NOTIFY: change_seats(core, ELASTIC_NOTIFY, false); break;
    case MUTATION_SILENT_LINE:
        follow(core, ELASTIC_START, (struct elastic_action){.kind = ELASTIC_SAY, .text = ""});
        break;
    case MUTATION_NO_GROWTH: forget(core, ELASTIC_NOTIFY); break;
    case MUTATION_NO_RESUME: forget(core, ELASTIC_RESUMED); break;
    case MUTATION_EARLY_RESUME:
        follow(core, ELASTIC_START, (struct elastic_action){.kind = ELASTIC_RESUMED});
        break;
    default: break;
    }
}

static void more_slots(struct core *core, const struct elastic_event *event, int64_t now_ms)
{
    struct host_list list = {0};
    for (size_t i = 0; i < event->hosts->count; i++)
        hosts_add(&list, event->hosts->items[i].name, event->hosts->items[i].slots + 1, true);
    elastic_event(core->elastic, &(struct elastic_event){.kind = ELASTIC_HOSTS, .hosts = &list},
                  now_ms, &core->actions);
    hosts_destroy(&list);
}

/* The event as a broken core hears it. */
static void hear(struct core *core, const struct elastic_event *event, int64_t now_ms)
{
    if (core->mutation == MUTATION_HOST && event->kind == ELASTIC_HOST_DRAIN)
        return;
    if (core->mutation == MUTATION_DEAF && event->kind == ELASTIC_EXITED)
        return;
    if (core->mutation == MUTATION_DEAF_TO_HANGS && event->kind == ELASTIC_HUNG)
        return;
    struct elastic_event changed = *event;
    if (core->mutation == MUTATION_AGAIN && event->kind == ELASTIC_EXITED && event->code == 0)
        changed.code = 1;
    if (core->mutation == MUTATION_NO_CULPRIT && event->kind == ELASTIC_HUNG)
        changed.seat = -1;
    if (core->mutation == MUTATION_LEAVE)
        changed.deadline_ms = -1;
    if (core->mutation == MUTATION_SLOT && event->kind == ELASTIC_HOSTS)
        more_slots(core, event, now_ms);
    else
        elastic_event(core->elastic, &changed, now_ms, &core->actions);
}

void core_event(struct core *core, const struct elastic_event *event, int64_t now_ms)
{
    core->actions.count = 0;
    hear(core, event, now_ms);
    if (core->mutation != MUTATION_NONE) {
        mutate_added(core, event);
        mutate_actions(core);
    }
    core->last = event->kind;
    core->last_ms = now_ms;
}

int64_t core_deadline(const struct core *core)
{
    const int64_t deadline = elastic_deadline(core->elastic);
    if (core->mutation == MUTATION_NO_DEADLINE && elastic_state(core->elastic) == ELASTIC_AGREEING)
        return -1;
    if (core->mutation == MUTATION_SPIN && core->last == ELASTIC_TICK)
        return core->last_ms;
    return deadline;
}

enum elastic_state core_state(const struct core *core)
{
    return elastic_state(core->elastic);
}

struct elastic_host_facts core_host(const struct core *core, int host)
{
    struct elastic_host_facts facts = elastic_host_facts(core->elastic, host);
    if (core->mutation == MUTATION_VIEW)
        facts.state = ELASTIC_HOST_UP;
    return facts;
}

static void exchange(struct elastic_plan *plan, int a, int b)
{
    const struct elastic_member member = plan->members[a];
    plan->members[a] = plan->members[b];
    plan->members[b] = member;
    plan->members[a].rank = a;
    plan->members[b].rank = b;
}

/* Moves the last new worker before a survivor: the first one, or the last one. */
static void new_before(struct elastic_plan *plan, bool first)
{
    for (int m = plan->size - 1; m > 0; m--) {
        if (!plan->members[m].is_new)
            continue;
        for (int o = first ? 0 : m - 1; o >= (first ? 0 : 1); o--) {
            if (!plan->members[o].is_new) {
                exchange(plan, o, m);
                return;
            }
        }
        return;
    }
}

static void swap_survivors(struct elastic_plan *plan)
{
    for (int m = 0; m + 1 < plan->size; m++) {
        if (!plan->members[m].is_new && !plan->members[m + 1].is_new) {
            exchange(plan, m, m + 1);
            return;
        }
    }
}

static void mutate_plan(const struct core *core, struct elastic_plan *plan)
{
    const int last = plan->size - 1;
    switch (core->mutation) {
    case MUTATION_PLACE:
        if (last > 0 && elastic_state(core->elastic) == ELASTIC_RUNNING)
            plan->members[last].rank = 0;
        break;
    case MUTATION_SAME_RANK: plan->members[last].rank = 0; break;
    case MUTATION_LOCAL: plan->members[last].local_size++; break;
    case MUTATION_CROSS: plan->members[last].cross_rank++; break;
    case MUTATION_SWAP: swap_survivors(plan); break;
    case MUTATION_NEW_FIRST: new_before(plan, true); break;
    case MUTATION_NEW_BEFORE: new_before(plan, false); break;
    case MUTATION_THROW:
        if (last > 0 && !plan->members[last].is_new)
            plan->size--;
        break;
    case MUTATION_NUMBERS:
        for (int m = 1; m < plan->size; m++) {
            const struct elastic_worker_facts facts =
                elastic_worker_facts(core->elastic, plan->members[m].seat);
            if (facts.state == ELASTIC_WORKER_READY) {
                exchange(plan, m - 1, m);
                break;
            }
        }
        break;
    case MUTATION_FEWER: plan->size = 0; break;
    case MUTATION_SEAT: plan->members[last].seat = plan->members[0].seat; break;
    case MUTATION_EPOCH: plan->epoch = 1; break;
    default: break;
    }
}

const struct elastic_plan *core_plan(struct core *core)
{
    const struct elastic_plan *plan = elastic_plan(core->elastic);
    if (core->mutation == MUTATION_NONE || plan == NULL || plan->size > CORE_MEMBERS)
        return plan;
    core->plan = *plan;
    core->plan.members = core->members;
    memcpy(core->members, plan->members, (size_t)plan->size * sizeof(*plan->members));
    mutate_plan(core, &core->plan);
    return &core->plan;
}

const struct elastic_plan *core_newcomers(const struct core *core)
{
    return elastic_newcomers(core->elastic);
}

const struct elastic_facts *core_facts(struct core *core)
{
    core->facts = *elastic_facts(core->elastic);
    if (core->mutation == MUTATION_FACTS)
        core->facts.resumed_ms = core->facts.started_ms - 1;
    return &core->facts;
}

const struct elastic_verdict *core_verdict(struct core *core)
{
    core->verdict = *elastic_verdict(core->elastic);
    if (core->mutation == MUTATION_SUCCESS) {
        core->verdict.end = ELASTIC_END_SUCCESS;
        core->verdict.text[0] = '\0';
    }
    if (core->mutation == MUTATION_UNREAD &&
        strstr(core->verdict.text, "all ranks exited with code 0") != NULL) {
        core->verdict.end = ELASTIC_END_SUCCESS;
        core->verdict.text[0] = '\0';
    }
    if (core->mutation == MUTATION_FALSE_HANG && core->verdict.end == ELASTIC_END_CRASH)
        core->verdict.end = ELASTIC_END_HUNG;
    if (core->mutation == MUTATION_WRONG_CODE)
        core->verdict.code++;
    return &core->verdict;
}
