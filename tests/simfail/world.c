/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "simfail/parts.h"

#define END_NS (200 * SECOND)
#define TRACE "Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n"
#define OWN_ERROR TRACE "ValueError: row 7 is broken\n"
#define HANDLED TRACE "OSError: the file of row %d cannot be read\n"
#define ASSERTION "mesh: mesh.c:3: build: Assertion `n > 0' failed.\n"
#define TIMED_OUT TRACE "RuntimeError: Timed out waiting 30000ms for recv operation to complete\n"
#define NAMED TRACE "HorovodInternalError: rank %d has shut the library down\n"

int64_t world_slow(struct world *world, int64_t low, int64_t high)
{
    int doublings = 0;
    while (low << doublings < high)
        doublings++;
    int64_t least = low << rng_below(&world->rng, doublings + 1);
    int64_t most = least * 2 < high ? least * 2 : high;
    return rng_between(&world->rng, least < most ? least : most, most);
}

static void send(struct world *world, const struct news *news)
{
    struct place *host = &world->hosts[news->host];
    int64_t arrival = world->now_ns + world_slow(world, 20000, 40 * MS);
    if (arrival < host->link_ns)
        arrival = host->link_ns;
    if (arrival >= world->stall_ns && arrival < world->stall_end_ns)
        arrival = world->stall_end_ns;
    host->link_ns = arrival;
    if (world->news_count == NEWS_MAX)
        return; /* heartbeats of a very long schedule */
    world->news[world->news_count] = *news;
    agenda_add(&world->agenda, arrival, EVENT_NEWS, world->news_count++);
}

/* The agent writes down its time. */
static int64_t stamp(struct world *world, int host)
{
    int64_t time_ns = world->now_ns + world->hosts[host].skew_ns;
    if (time_ns > world->hosts[host].stamp_ns)
        world->hosts[host].stamp_ns = time_ns;
    return world->hosts[host].stamp_ns;
}

static bool answers(const struct world *world, int host)
{
    return world->hosts[host].dead_ns == NEVER && world->hosts[host].stopped_ns == NEVER;
}

static void send_output(struct world *world, int number)
{
    struct rank *rank = &world->ranks[number];
    struct news news = {.kind = NEWS_OUTPUT, .host = rank->host, .rank = number};
    if (rank->text[0] == '\0')
        return;
    news.stamp_ns = stamp(world, rank->host);
    memcpy(news.text, rank->text, sizeof(news.text));
    rank->text[0] = '\0';
    send(world, &news);
}

static void writes(struct world *world, int number, const char *text, int peer)
{
    struct rank *rank = &world->ranks[number];
    snprintf(rank->text, sizeof(rank->text), text, peer);
    agenda_add(&world->agenda, world->now_ns + world_slow(world, 1000, 20 * MS), EVENT_READ,
               number);
}

static void end_in(struct world *world, int number, int64_t after_ns, bool signaled, int code)
{
    world->ranks[number].signaled = signaled;
    world->ranks[number].code = code;
    agenda_add(&world->agenda, world->now_ns + after_ns, EVENT_END, number);
}

/* From when the connections of a rank end until it can be waited for. */
static int64_t leave_time(struct world *world)
{
    return rng_chance(&world->rng, 30) ? world_slow(world, 1000, 60 * MS) : 0;
}

static void ends(struct world *world, int number, int64_t leave_ns)
{
    struct rank *rank = &world->ranks[number];
    for (int i = 0; i < world->truth_count; i++)
        if (world->truths[i].rank == number && world->truths[i].end_ns == NEVER)
            world->truths[i].end_ns = world->now_ns;
    struct place *host = &world->hosts[rank->host];
    rank->waitable_ns = world->now_ns + leave_ns;
    int64_t reap_ns = rank->waitable_ns + world_slow(world, 1000, 30 * MS);
    reap_ns = reap_ns > host->reap_ns ? reap_ns : host->reap_ns;
    if (leave_ns == 0)
        host->reap_ns = reap_ns;
    rank->ended = true;
    if (world->tell)
        printf("%12.6f rank %d ends\n", (double)world->now_ns / 1e9, number);
    agenda_add(&world->agenda, reap_ns, EVENT_REAP, number);
}

static void look(struct world *world, int host, int64_t stamp_ns)
{
    for (int i = 0; i < world->rank_count && world->lie != LIE_BLIND; i++) {
        struct rank *rank = &world->ranks[i];
        if (rank->host == host && rank->ended && !rank->reaped && rank->ending_ns == 0)
            rank->ending_ns = stamp_ns;
    }
}

/* The agent looks which ranks are ending, at the first failure and the first success before that:
 * agent/crews.c. */
static void note_end(struct world *world, int number, int64_t stamp_ns)
{
    const struct rank *rank = &world->ranks[number];
    struct place *host = &world->hosts[rank->host];
    bool *before = rank->signaled || rank->code != 0 ? &host->failed : &host->succeeded;
    if (host->killing)
        return;
    if (!host->failed && !*before)
        look(world, rank->host, stamp_ns);
    *before = true;
}

static void reap(struct world *world, int number)
{
    struct rank *rank = &world->ranks[number];
    struct news news = {.kind = NEWS_EXITED, .host = rank->host, .rank = number};
    if (!answers(world, rank->host) || rank->reaped)
        return;
    rank->reaped = true;
    news.signaled = rank->signaled;
    news.code = rank->code;
    news.ending_ns = rank->ending_ns;
    news.stamp_ns = stamp(world, rank->host);
    bool ordered = world->hosts[rank->host].failed && (rank->signaled || rank->code != 0);
    note_end(world, number, news.stamp_ns);
    if (rank->ending_ns != 0 && !ordered)
        news.stamp_ns = rank->ending_ns;
    bool first = rng_chance(&world->rng, 50);
    if (first)
        send_output(world, number);
    send(world, &news);
    send_output(world, number);
    news.kind = NEWS_FINISHED;
    send(world, &news);
}

/* The peers hear of it in any order, some of them late: they compute. */
static void tell_peers(struct world *world, int which)
{
    const struct truth *truth = &world->truths[which];
    bool silent = truth->reason == REASON_POWER;
    for (int i = 0; i < world->rank_count; i++) {
        bool victim = truth->rank >= 0 ? i != truth->rank : world->ranks[i].host != truth->host;
        int64_t after = silent ? rng_between(&world->rng, 2 * SECOND, 60 * SECOND)
                               : world_slow(world, 50000, 4 * SECOND);
        if (victim && (!silent || rng_chance(&world->rng, 50)))
            agenda_add(&world->agenda, world->now_ns + after, EVENT_NOTICE, which * RANKS_MAX + i);
    }
}

static bool somebody_has_blamed(const struct world *world)
{
    bool blamed = false;
    for (int i = 0; i < world->rank_count; i++)
        blamed = blamed || (world->ranks[i].reaped && world->ranks[i].blames);
    return blamed;
}

/* Some peers say nothing beside others that do. After an exit with 0, nothing would tell that the
 * first of them failed because of a peer. */
static bool is_quiet(struct world *world, const struct truth *truth)
{
    bool at_once = truth->reason == REASON_CRASH || truth->reason == REASON_KILLED ||
                   truth->reason == REASON_EXIT;
    return truth->blames == NULL || (at_once && rng_chance(&world->rng, 20) &&
                                     (truth->code != 0 || somebody_has_blamed(world)));
}

/* A rank leaves, and its peers do not say which one. */
static bool has_hidden_leave(const struct world *world)
{
    bool has = false;
    for (int i = 0; i < world->truth_count; i++)
        has = has || (world->truths[i].reason == REASON_LEAVE && !world->truths[i].names);
    return has;
}

/* It may call abort(), exit with what a shell makes of that, or with 1, or take it for the end. */
static void notices(struct world *world, int number, const struct truth *truth)
{
    struct rank *rank = &world->ranks[number];
    if (rank->ended || rank->failing)
        return;
    rank->failing = true;
    int64_t after_ns = world_slow(world, 100000, 400 * MS);
    if (!has_hidden_leave(world) && rng_chance(&world->rng, 10)) {
        end_in(world, number, after_ns, false, 0);
        return;
    }
    bool timeout = truth->reason == REASON_POWER, quiet = is_quiet(world, truth);
    rank->blames = !quiet;
    if (!quiet)
        writes(world, number, timeout ? TIMED_OUT : truth->blames, truth->rank);
    int how = rng_below(&world->rng, 8);
    bool alike = quiet && (truth->reason == REASON_EXIT || world->truth_count > 1);
    end_in(world, number, (alike ? 100 * MS : 0) + after_ns, how == 0,
           how == 0   ? SIGABRT
           : how == 1 ? 134
                      : 1);
}

static void fall(struct world *world, int number)
{
    struct place *host = &world->hosts[number];
    struct news news = {.kind = NEWS_CLOSED, .host = number};
    if (host->dead_ns != NEVER)
        return;
    host->dead_ns = world->now_ns;
    for (int i = 0; i < world->truth_count; i++)
        if (world->truths[i].rank < 0 && world->truths[i].host == number &&
            world->truths[i].end_ns == NEVER)
            world->truths[i].end_ns = world->now_ns;
    for (int i = 0; i < world->rank_count; i++)
        world->ranks[i].ended = world->ranks[i].ended || world->ranks[i].host == number;
    if (!host->silent)
        send(world, &news);
}

/* Slurm kills all processes of a host, in any order. */
static void sweep(struct world *world, int host)
{
    int64_t last_ns = -1;
    for (int i = 0; i < world->rank_count; i++) {
        if (world->ranks[i].host != host || world->ranks[i].ended)
            continue;
        int64_t after = last_ns < 0 ? 0 : world_slow(world, 10000, 100 * MS);
        last_ns = after > last_ns ? after : last_ns;
        agenda_add(&world->agenda, world->now_ns + after, EVENT_KILL, i);
    }
    agenda_add(&world->agenda, world->now_ns + last_ns + world_slow(world, 10000, 200 * MS),
               EVENT_FALL, host);
}

static void begin_rank(struct world *world, struct truth *truth)
{
    bool usual = rng_chance(&world->rng, 50);
    world->ranks[truth->rank].failing = true;
    switch (truth->reason) {
    case REASON_CRASH: end_in(world, truth->rank, 0, true, usual ? SIGSEGV : SIGBUS); break;
    case REASON_KILLED: end_in(world, truth->rank, 0, true, SIGKILL); break;
    case REASON_EXIT: end_in(world, truth->rank, 0, false, truth->code); break;
    case REASON_ERROR:
        writes(world, truth->rank, OWN_ERROR, 0);
        end_in(world, truth->rank, world_slow(world, MS, 8 * SECOND), false, truth->code);
        break;
    case REASON_ASSERT:
        writes(world, truth->rank, ASSERTION, 0);
        end_in(world, truth->rank, world_slow(world, 100000, 50 * MS), true, SIGABRT);
        break;
    default: /* REASON_LEAVE */
        truth->stay_ns = world_slow(world, MS, 6 * SECOND);
        end_in(world, truth->rank, truth->stay_ns, false, truth->code);
    }
}

static void begin_host(struct world *world, struct truth *truth)
{
    switch (truth->reason) {
    case REASON_SWEPT:
        truth->end_ns = world->now_ns; /* of its first rank */
        sweep(world, truth->host);
        break;
    case REASON_STOPPED: world->hosts[truth->host].stopped_ns = world->now_ns; break;
    case REASON_POWER: world->hosts[truth->host].silent = true; /* fall through */
    default: fall(world, truth->host);
    }
}

static bool has_ranks(const struct world *world, int host)
{
    bool has = false;
    for (int i = 0; i < world->rank_count; i++)
        has = has || (world->ranks[i].host == host && !world->ranks[i].ended);
    return has;
}

static void begin(struct world *world, int which)
{
    struct truth *truth = &world->truths[which];
    bool there = truth->rank >= 0
                     ? !world->ranks[truth->rank].ended && !world->ranks[truth->rank].failing
                     : answers(world, truth->host) && has_ranks(world, truth->host);
    truth->began = there;
    truth->begin_ns = world->now_ns;
    if (!there)
        return;
    if (world->tell)
        printf("%12.6f reason %d: rank %d, host %d, code %d\n", (double)world->now_ns / 1e9,
               (int)truth->reason, truth->rank, truth->host, truth->code);
    if (truth->rank >= 0)
        begin_rank(world, truth);
    else
        begin_host(world, truth);
    if (truth->reason != REASON_STOPPED)
        tell_peers(world, which);
}

static void order(struct world *world, int number)
{
    struct place *host = &world->hosts[number];
    struct news news = {.kind = NEWS_KILLING, .host = number};
    if (host->killing || !answers(world, number))
        return;
    host->killing = true;
    look(world, number, stamp(world, number));
    for (int i = 0; i < world->rank_count; i++)
        if (world->ranks[i].host == number && world->ranks[i].ended &&
            world->ranks[i].waitable_ns <= world->now_ns)
            reap(world, i);
    news.stamp_ns = stamp(world, number);
    send(world, &news);
    for (int i = 0; i < world->rank_count; i++)
        if (world->ranks[i].host == number && !world->ranks[i].ended)
            agenda_add(&world->agenda, world->now_ns + world_slow(world, 50000, 300 * MS),
                       EVENT_TERM, i);
}

static void killed(struct world *world, int number)
{
    if (world->ranks[number].ended)
        return;
    world->ranks[number].signaled = true;
    world->ranks[number].code = SIGKILL;
    ends(world, number, 0); /* else its agent may be killed first, and say nothing */
}

static void terminated(struct world *world, int number)
{
    if (world->ranks[number].ended)
        return;
    int how = rng_below(&world->rng, 8);
    world->ranks[number].signaled = how > 1;
    world->ranks[number].code = how > 1 ? SIGTERM : how == 1 ? 143 : 1;
    ends(world, number, leave_time(world));
}

static void beat(struct world *world, int host)
{
    struct news news = {.kind = NEWS_BEAT, .host = host};
    if (answers(world, host)) {
        news.stamp_ns = stamp(world, host);
        send(world, &news);
    }
    agenda_add(&world->agenda, world->now_ns + SECOND + world_slow(world, 1000, 30 * MS),
               EVENT_BEAT, host);
    driver_silent(world);
}

/* A driver that stands still sees no timer. Then it first reads what has come, as its loop does. */
static void waited(struct world *world, int number)
{
    if (world->now_ns >= world->stall_ns && world->now_ns < world->stall_end_ns)
        agenda_add(&world->agenda, world->stall_end_ns + 1, EVENT_WAITED, number);
    else
        driver_waited(world, number);
}

static void happen(struct world *world, const struct event *event)
{
    int who = event->who;
    switch (event->kind) {
    case EVENT_REASON: begin(world, who); break;
    case EVENT_NOTICE: notices(world, who % RANKS_MAX, &world->truths[who / RANKS_MAX]); break;
    case EVENT_ERROR: writes(world, who, HANDLED, 7); break;
    case EVENT_END:
        if (!world->ranks[who].ended)
            ends(world, who, leave_time(world));
        break;
    case EVENT_KILL: killed(world, who); break;
    case EVENT_TERM: terminated(world, who); break;
    case EVENT_READ:
        if (answers(world, world->ranks[who].host))
            send_output(world, who);
        break;
    case EVENT_REAP: reap(world, who); break;
    case EVENT_FALL: fall(world, who); break;
    case EVENT_BEAT: beat(world, who); break;
    case EVENT_NEWS: driver_news(world, &world->news[who]); break;
    case EVENT_ORDER: order(world, who); break;
    case EVENT_WAITED: waited(world, who); break;
    case EVENT_LIMIT: driver_limit(world); break;
    }
}

/* What the library of the ranks says about a peer that has gone. */
static void pick_words(struct world *world, struct truth *truth)
{
    static const char *const texts[] = {
        NULL,
        TRACE "ConnectionResetError: [Errno 104] Connection reset by peer\n",
        TRACE "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.1]:33502\n",
        "the connection to rank 0 ended\n",
        TRACE "torch.distributed.DistBackendError: NCCL error, ncclRemoteError: remote process\n",
        TRACE "HorovodInternalError: Horovod has been shut down.\n"};
    bool leaves = truth->reason == REASON_LEAVE;
    bool late = truth->reason == REASON_ERROR || truth->reason == REASON_ASSERT;
    int low = leaves || truth->code == 0 ? 2 : late ? 1 : 0;
    truth->blames = texts[rng_between(&world->rng, low, leaves ? 5 : 4)];
    truth->names = leaves && rng_chance(&world->rng, 50);
    if (truth->names)
        truth->blames = NAMED;
}

static void pick_truth(struct world *world, struct truth *truth)
{
    static const int codes[] = {3, 1, 0};
    *truth = (struct truth){.reason = (enum reason)rng_below(&world->rng, REASONS),
                            .rank = rng_below(&world->rng, world->rank_count),
                            .end_ns = NEVER};
    truth->host = world->ranks[truth->rank].host;
    truth->code = codes[rng_below(&world->rng, truth->reason == REASON_ERROR ? 2 : 3)];
    if (truth->reason >= REASON_AGENT)
        truth->rank = -1;
    else if (truth->reason != REASON_EXIT && truth->reason != REASON_LEAVE && truth->code == 0)
        truth->code = 1;
    if (truth->rank < 0)
        truth->code = 1;
    pick_words(world, truth);
}

/* See world.h: nothing tells these apart. */
static bool is_hidden(const struct truth *first, const struct truth *second)
{
    bool leaves = first->reason == REASON_LEAVE || first->code == 0;
    bool falls = first->reason == REASON_KILLED && first->host == second->host;
    bool closes = second->rank < 0 && second->reason != REASON_POWER &&
                  second->reason != REASON_STOPPED; /* and peers notice it at once */
    return closes && (falls || (leaves && !first->names));
}

static void pick_hosts(struct world *world)
{
    world->host_count = 1 + rng_below(&world->rng, PLACES_MAX);
    for (int h = 0; h < world->host_count; h++) {
        struct place *host = &world->hosts[h];
        *host = (struct place){.stamp_ns = INT64_MIN, .dead_ns = NEVER, .stopped_ns = NEVER};
        bool here = h == 0 && rng_chance(&world->rng, 50);
        int64_t off = here ? 0 : world_slow(world, 10000, 100 * MS);
        host->uncertainty_ns = off;
        host->skew_ns = rng_between(&world->rng, -off, off);
        if (rng_chance(&world->rng, 2)) { /* the clocks were never compared */
            host->uncertainty_ns = INT64_MAX / 4;
            host->skew_ns = rng_between(&world->rng, -1000 * SECOND, 1000 * SECOND);
        }
        int count = 1 + rng_below(&world->rng, RANKS_MAX / PLACES_MAX);
        if (world->host_count == 1 && count == 1)
            count = 2;
        for (int i = 0; i < count; i++)
            world->ranks[world->rank_count++] = (struct rank){.host = h};
        agenda_add(&world->agenda, rng_between(&world->rng, 0, SECOND), EVENT_BEAT, h);
    }
}

/* A rank writes an error long before a host is lost, or just before, and goes on. */
static void pick_handled(struct world *world, uint64_t seed, int64_t begin_ns)
{
    const struct truth *truth = &world->truths[0];
    struct rng rng = rng_stream(seed, 2); /* all other schedules stay as they are */
    if (truth->rank >= 0 || truth->reason == REASON_SWEPT || !rng_chance(&rng, 20))
        return;
    world->handled = true;
    agenda_add(&world->agenda, rng_between(&rng, 0, begin_ns), EVENT_ERROR,
               rng_below(&rng, world->rank_count));
}

/* A rank may be done before the first reason. The reasons are no other ones because of that. */
static void pick_bystander(struct world *world, int64_t begin_ns)
{
    int rank = rng_below(&world->rng, world->rank_count);
    bool there = rng_chance(&world->rng, 20) && !has_hidden_leave(world);
    for (int i = 0; i < world->truth_count; i++) {
        const struct truth *truth = &world->truths[i];
        bool on_host = truth->rank < 0 && world->ranks[rank].host == truth->host;
        there = there && rank != truth->rank && !on_host;
    }
    if (!there)
        return;
    agenda_add(&world->agenda, begin_ns - rng_between(&world->rng, MS, 4 * SECOND), EVENT_END,
               rank);
}

static void open_world(struct world *world, uint64_t seed)
{
    world->rng = rng_stream(seed, 1);
    pick_hosts(world);
    int64_t begin_ns = 5 * SECOND + rng_between(&world->rng, 0, 2 * SECOND);
    pick_truth(world, &world->truths[0]);
    pick_truth(world, &world->truths[1]);
    agenda_add(&world->agenda, begin_ns, EVENT_REASON, 0);
    world->truth_count = 1;
    if (rng_chance(&world->rng, 20) && !is_hidden(&world->truths[0], &world->truths[1])) {
        world->truth_count = 2;
        agenda_add(&world->agenda, begin_ns + world_slow(world, 10000, 3 * SECOND), EVENT_REASON,
                   1);
    }
    pick_bystander(world, begin_ns);
    if (rng_chance(&world->rng, 30)) {
        world->stall_ns = begin_ns + rng_between(&world->rng, -SECOND, SECOND);
        world->stall_end_ns = world->stall_ns + world_slow(world, MS, 2 * SECOND);
    }
    if (world->truth_count == 1)
        pick_handled(world, seed, begin_ns);
    driver_open(world);
}

void world_run(uint64_t seed, enum lie lie, bool tell, struct outcome *out)
{
    struct world *world AUTO_FREE = mem_alloc(sizeof(*world));
    struct event event;
    world->lie = lie;
    world->tell = tell;
    *out = (struct outcome){.problem = ""};
    open_world(world, seed);
    out->reason = world->truths[0].reason;
    while (!driver_is_over(world) && agenda_next(&world->agenda, &event) && event.at_ns < END_NS) {
        world->now_ns = event.at_ns;
        happen(world, &event);
    }
    out->news = world->news_count;
    driver_judge(world, out);
    driver_close(world);
}
