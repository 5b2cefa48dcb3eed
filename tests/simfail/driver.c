/* SPDX-License-Identifier: Apache-2.0 */
/* What driver/start/static_kind.c, end/blame.c and job/node_link.c do. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/hosts/entry.h"
#include "simfail/parts.h"

#define OUTPUT_WAIT (200 * MS)
#define CAUSE_WAIT (3 * SECOND)
#define GIVE_UP (20 * SECOND)
#define SUSPECT (5 * SECOND)
#define LATE (100 * MS) /* an agent sees an end that much later */

static void say(const struct world *world, const char *what, int who, const char *more)
{
    if (world->tell)
        printf("%12.6f %s %d %s\n", (double)world->now_ns / 1e9, what, who, more);
}

void driver_open(struct world *world)
{
    struct driver *driver = &world->driver;
    struct host_list hosts = {0};
    struct app_list apps = {0};
    struct error err = ERROR_INIT;
    char text[64] = "";
    for (int h = 0; h < world->host_count; h++) {
        int count = 0;
        for (int i = 0; i < world->rank_count; i++)
            count += world->ranks[i].host == h;
        size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%sh%d:%d", h > 0 ? "," : "", h, count);
    }
    app_list_add(&apps);
    if (hosts_parse(text, &hosts, &err) == 0)
        driver->plan = plan_create(&(struct plan_request){.hosts = &hosts, .apps = &apps}, &err);
    app_list_destroy(&apps);
    hosts_destroy(&hosts);
    if (driver->plan == NULL || driver->plan->size != world->rank_count)
        abort();
    driver->policy = exit_policy_create(EXIT_FIRST, driver->plan, &driver->outside);
    driver->first = -1;
    driver->timeout_ns = rng_chance(&world->rng, 50) ? 30 * SECOND : 6 * SECOND;
    for (int i = 0; i < world->rank_count; i++)
        exit_policy_started(driver->policy, i);
    say(world, text, world->rank_count, "ranks");
}

void driver_close(struct world *world)
{
    for (int i = 0; i < world->rank_count; i++)
        tail_destroy(&world->driver.ranks[i].tail);
    exit_policy_destroy(world->driver.policy);
    exit_outside_clear(&world->driver.outside);
    plan_destroy(world->driver.plan);
}

static int64_t doubt_of(const struct world *world, int host)
{
    return world->lie == LIE_CERTAIN ? 0 : world->hosts[host].uncertainty_ns;
}

static void end_all(struct world *world)
{
    if (world->driver.ending)
        return;
    world->driver.ending = true;
    say(world, "the driver ends all", 0, "");
    for (int h = 0; h < world->host_count; h++)
        agenda_add(&world->agenda, world->now_ns + world_slow(world, 20000, 40 * MS), EVENT_ORDER,
                   h);
    agenda_add(&world->agenda, world->now_ns + GIVE_UP, EVENT_LIMIT, 0);
}

static bool may_follow(const struct exit_event *event)
{
    return event->signaled ? event->code == SIGABRT : event->code != 0;
}

static void describe(const struct world *world, struct root_cause_rank ranks[RANKS_MAX])
{
    for (int i = 0; i < world->rank_count; i++) {
        const struct record *record = &world->driver.ranks[i];
        ranks[i] = (struct root_cause_rank){
            .took_part = true,
            .rank = i,
            .node = world->ranks[i].host,
            .uncertainty_ns = doubt_of(world, world->ranks[i].host),
            .ended = record->exited,
            .finished = record->finished,
            .ended_by_us = record->by_us,
            .clean = record->exited && !record->event.signaled && record->event.code == 0,
            .may_follow = record->exited && may_follow(&record->event),
            .ended_ns = record->event.when_ns,
            .ending_ns =
                record->event.ending_ns != 0 ? record->event.ending_ns : record->event.when_ns,
            .tail = &record->tail};
    }
}

/* The end of the job may wait for its cause: end/blame.c. */

static void wait_for(struct world *world, int64_t limit_ns)
{
    agenda_add(&world->agenda, world->now_ns + limit_ns, EVENT_WAITED, ++world->driver.waits);
}

static bool comes(const struct world *world, int rank)
{
    struct root_cause_rank ranks[RANKS_MAX];
    describe(world, ranks);
    return world->lie != LIE_HASTY && root_cause_comes(ranks, world->rank_count, rank);
}

static bool came(const struct world *world, int rank)
{
    struct root_cause_rank ranks[RANKS_MAX];
    describe(world, ranks);
    return root_cause_came(&ranks[rank]);
}

static void stop_waiting(struct world *world)
{
    if (world->driver.first < 0)
        return;
    world->driver.first = -1;
    end_all(world);
}

static void take_first(struct world *world)
{
    if (!comes(world, world->driver.first)) {
        stop_waiting(world);
        return;
    }
    world->driver.is_sure = true;
    wait_for(world, CAUSE_WAIT);
}

void driver_waited(struct world *world, int wait)
{
    if (world->driver.first < 0 || wait != world->driver.waits)
        return;
    if (world->driver.is_sure)
        stop_waiting(world);
    else
        take_first(world);
}

static void failed(struct world *world, int rank)
{
    if (!may_follow(&world->driver.ranks[rank].event)) {
        end_all(world);
        return;
    }
    world->driver.first = rank;
    world->driver.is_sure = false;
    wait_for(world, OUTPUT_WAIT);
}

/* News */

static void take_exit(struct world *world, const struct news *news)
{
    struct driver *driver = &world->driver;
    struct record *record = &driver->ranks[news->rank];
    record->exited = true;
    record->event = (struct exit_event){.seat = news->rank,
                                        .signaled = news->signaled,
                                        .code = news->code,
                                        .when_ns = news->stamp_ns,
                                        .ending_ns = news->ending_ns,
                                        .uncertainty_ns = doubt_of(world, news->host)};
    record->event.when_ns = exit_event_time(&record->event);
    int64_t killed_ns = driver->hosts[news->host].killed_ns;
    record->by_us =
        killed_ns != 0 && exit_is_after_kill(record->event.when_ns, news->ending_ns, killed_ns);
    bool wanted = exit_policy_ended(driver->policy, FACT_EXITED, &record->event, NULL);
    if (driver->first >= 0 && news->rank != driver->first && came(world, news->rank))
        stop_waiting(world);
    if (wanted)
        failed(world, news->rank);
}

static void take_finish(struct world *world, int rank)
{
    struct driver *driver = &world->driver;
    driver->ranks[rank].finished = true;
    if (driver->first < 0)
        return;
    if (rank == driver->first && !driver->is_sure)
        take_first(world);
    else if (rank != driver->first && came(world, rank))
        stop_waiting(world);
}

/* job/node_link.c: node_link_loss(). `closed`: by the other end */
static void lose(struct world *world, int host, bool closed)
{
    struct driver *driver = &world->driver;
    int64_t now = world->now_ns, heard = driver->hosts[host].heard_ns;
    struct exit_loss loss = {.alive_ns = driver->hosts[host].alive_ns,
                             .uncertainty_ns = doubt_of(world, host),
                             .by_ns = now,
                             .silent = now - heard >= SUSPECT};
    if (driver->hosts[host].lost)
        return;
    driver->hosts[host].lost = true;
    if (loss.silent)
        loss.by_ns = heard + 2 * SECOND;
    else if (!closed)
        loss.alive_ns = now;
    if (world->lie == LIE_NOTICED)
        loss.alive_ns = loss.by_ns = now;
    if (world->lie == LIE_HEARD)
        loss.alive_ns = loss.by_ns = heard;
    if (world->lie == LIE_CLOSED)
        loss.silent = false;
    driver->hosts[host].lost_ns = loss.by_ns;
    say(world, "lost host", host, closed ? "closed" : "");
    if (driver->first >= 0)
        stop_waiting(world);
    if (exit_policy_node_lost(driver->policy, host, &loss, NULL))
        end_all(world);
}

static void tell_news(const struct world *world, const struct news *news)
{
    static const char *const names[] = {"beat of host",   "output of rank",  "exit of rank",
                                        "finish of rank", "killing on host", "end of host"};
    char more[300];
    bool of_rank = news->kind >= NEWS_OUTPUT && news->kind <= NEWS_FINISHED;
    snprintf(more, sizeof(more), "at %.6f: %s %d %s", (double)news->stamp_ns / 1e9,
             news->signaled ? "signal" : "code", news->code, news->text);
    if (news->kind != NEWS_BEAT)
        say(world, names[news->kind], of_rank ? news->rank : news->host, more);
}

void driver_news(struct world *world, const struct news *news)
{
    struct driver *driver = &world->driver;
    if (driver->hosts[news->host].lost)
        return;
    driver->hosts[news->host].heard_ns = world->now_ns;
    if (world->tell)
        tell_news(world, news);
    switch (news->kind) {
    case NEWS_BEAT: driver->hosts[news->host].alive_ns = news->stamp_ns; break;
    case NEWS_OUTPUT:
        tail_add(&driver->ranks[news->rank].tail, news->text, strlen(news->text), news->stamp_ns);
        break;
    case NEWS_EXITED: take_exit(world, news); break;
    case NEWS_FINISHED: take_finish(world, news->rank); break;
    case NEWS_KILLING:
        driver->hosts[news->host].killed_ns = news->stamp_ns;
        if (world->lie != LIE_UNTOLD)
            exit_policy_killed(driver->policy, news->host, news->stamp_ns);
        break;
    case NEWS_CLOSED: lose(world, news->host, true); break;
    }
}

void driver_silent(struct world *world)
{
    for (int h = 0; h < world->host_count; h++)
        if (world->now_ns - world->driver.hosts[h].heard_ns > world->driver.timeout_ns)
            lose(world, h, false);
}

void driver_limit(struct world *world)
{
    for (int h = 0; h < world->host_count; h++)
        for (int i = 0; i < world->rank_count; i++)
            if (world->ranks[i].host == h && !world->driver.ranks[i].finished)
                lose(world, h, false);
}

bool driver_is_over(const struct world *world)
{
    for (int i = 0; i < world->rank_count; i++)
        if (!world->driver.ranks[i].finished && !world->driver.hosts[world->ranks[i].host].lost)
            return false;
    return true;
}

/* The verdict: driver/start/static_kind.c and end/blame.c */

struct named {
    int rank, host; /* rank -1: a host */
    int status;
    bool doubt, likely;
};

static void read_ranks(const struct world *world)
{
    for (int i = 0; i < world->rank_count; i++) {
        struct symptom symptom;
        symptom_read(&world->driver.ranks[i].tail, INT64_MAX, &symptom);
        exit_policy_said(world->driver.policy, i, &symptom, doubt_of(world, world->ranks[i].host));
    }
}

static struct named refine(const struct world *world, const struct verdict *verdict)
{
    struct named named = {.rank = verdict->seat,
                          .host = verdict->node,
                          .status = verdict->status,
                          .doubt = verdict->tie};
    struct root_cause_rank ranks[RANKS_MAX];
    struct root_cause cause;
    if (verdict->seat < 0 || world->lie == LIE_FIRST)
        return named;
    describe(world, ranks);
    root_cause_find(ranks, world->rank_count, verdict->seat, &cause);
    named.doubt |= cause.kind == ROOT_CAUSE_UNKNOWN;
    if (cause.seat < 0)
        return named;
    const struct record *record = &world->driver.ranks[cause.seat];
    named.rank = cause.seat;
    named.likely = true;
    if (record->exited && record->event.signaled && !record->by_us)
        named.status = 128 + record->event.code;
    else if (record->exited && !record->event.signaled && record->event.code > 0 &&
             record->event.code != 143)
        named.status = record->event.code;
    return named;
}

static bool is_named(const struct world *world, const struct truth *truth,
                     const struct named *named)
{
    if (truth->rank >= 0)
        return named->rank == truth->rank;
    if (named->rank < 0)
        return named->host == truth->host;
    /* the first rank of a host that is swept, if the driver heard of it in time */
    const struct exit_event *event = &world->driver.ranks[named->rank].event;
    return truth->reason == REASON_SWEPT && world->ranks[named->rank].host == truth->host &&
           event->signaled && event->code == SIGKILL;
}

/* No rank of another host has failed before, or at about the same time. */
static bool all_fail_after(const struct world *world, int host)
{
    for (int i = 0; i < world->rank_count; i++) {
        const struct record *record = &world->driver.ranks[i];
        int64_t doubt_ns = LATE + record->event.uncertainty_ns;
        if (record->exited && !record->by_us && world->ranks[i].host != host &&
            record->event.when_ns - doubt_ns <= world->driver.hosts[host].lost_ns)
            return false;
    }
    return true;
}

/* Then the driver does not wait for another cause: root_cause_came(). */
static bool another_exited_clean(const struct world *world, int than)
{
    for (int i = 0; i < world->rank_count; i++)
        if (i != than && world->driver.ranks[i].exited &&
            !may_follow(&world->driver.ranks[i].event) && !world->driver.ranks[i].event.signaled)
            return true;
    return false;
}

/* hvdrun has all that it needs to name the rank with its status, or the host without a doubt. */
static bool is_clear(const struct world *world)
{
    const struct truth *truth = &world->truths[0];
    if (world->truth_count > 1)
        return false;
    if (world->handled)
        return all_fail_after(world, truth->host);
    return truth->reason == REASON_LEAVE
               ? truth->names && truth->stay_ns < 2 * SECOND &&
                     !another_exited_clean(world, truth->rank)
               : (truth->reason == REASON_AGENT || truth->reason == REASON_RESET) &&
                     truth->blames != NULL;
}

static bool is_named_well(const struct world *world, const struct outcome *out,
                          const struct named *named)
{
    const struct truth *truth = &world->truths[0];
    bool status = truth->rank < 0 || truth->code == 0 || named->status == truth->code;
    return out->right && status && (truth->rank >= 0 || !out->doubt || world->handled);
}

void driver_judge(struct world *world, struct outcome *out)
{
    const struct truth *first = &world->truths[0], *second = &world->truths[1];
    struct verdict verdict;
    if (!driver_is_over(world)) {
        snprintf(out->problem, sizeof(out->problem), "the job does not end");
        return;
    }
    if (world->lie != LIE_UNREAD)
        read_ranks(world);
    exit_policy_verdict(world->driver.policy, &verdict);
    struct named named = refine(world, &verdict);
    if (world->tell)
        printf("%s; rank %d, host %d, status %d%s%s\n", verdict.explanation, named.rank, named.host,
               named.status, named.doubt ? ", with a doubt" : "", named.likely ? ", likely" : "");
    bool all_well = first->code == 0 && (!second->began || second->code == 0);
    bool success = verdict.cause == CAUSE_NONE && all_well;
    out->right = success || is_named(world, first, &named);
    out->doubt = named.doubt;
    if (first->rank >= 0 && !world->driver.ranks[first->rank].exited)
        return; /* its host was lost before it could tell */
    /* an exit with 0 is a failure only if a peer fails because of it */
    bool later = second->begin_ns - LATE > first->begin_ns &&
                 second->end_ns - LATE > first->end_ns && first->code != 0;
    bool other =
        world->truth_count == 2 && second->began && !later && is_named(world, second, &named);
    if (!out->right && !named.doubt && !other)
        snprintf(out->problem, sizeof(out->problem), "wrong verdict: %s", verdict.explanation);
    else if (is_clear(world) && !is_named_well(world, out, &named))
        snprintf(out->problem, sizeof(out->problem), "not named as well as it could be: %s",
                 verdict.explanation);
    else if (out->right && first->rank < 0 && named.rank < 0 && named.status != STATUS_NODE_LOST)
        snprintf(out->problem, sizeof(out->problem), "wrong status %d", named.status);
}
