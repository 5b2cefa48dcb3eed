/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training of the elastic stand-in: its state, the collectives, commit and roll-back. The state
 * is (step, checksum). The ranks share the sum of a step among them. So the result shows whether
 * every part of every step was counted once, however many ranks there were.
 */
#pragma once

#include "elastic_horovod_fault.h"
#include "elastic_horovod_register.h"

enum { ITEMS = 97 }; /* of one step, dealt out among the ranks */

enum outcome { GO_ON, ALL_DONE, LOST, UPDATED };
enum kind { AGREE = 1, SYNC, STEP, COMMIT, END };

struct state {
    int64_t step;
    uint64_t checksum;
};

/* What the ranks tell each other. */
struct message {
    uint32_t magic, kind;
    int64_t step, sum, ones; /* of the allreduce */
    int64_t round, fresh, skip;
    uint64_t checksum;
    int64_t before, newest, result; /* timestamps and OR-ed results of notifications */
    int64_t may_end;
};

struct elastic {
    int argc;
    char **argv;
    struct worker worker;
    struct context contexts[CONTEXTS];
    struct notices notices;
    struct state state, saved;
    bool fresh; /* nothing of the job's state is here yet */
    bool skip_sync, never_ask, first_step;
    int64_t round, newest; /* newest: timestamp of the last notification that counted */
    int64_t steps, commit_every, progress, step_ms;
    struct message *all; /* of the last gathering, by rank */
};

static const char *volatile now_doing = "start";

static void out_of_time(int number)
{
    static const char text[] = "ABORT: out of time, while it was to ";
    (void)number;
    write_all(2, text, sizeof(text) - 1);
    write_all(2, now_doing, strlen(now_doing));
    write_all(2, "\n", 1);
    abort();
}

static void say(const struct elastic *e, const char *what)
{
    dprintf(1, "%s rank %d/%d host %s local %d step %lld pid %d\n", what, e->worker.global.rank,
            e->worker.global.size, e->worker.hostname, e->worker.local.rank,
            (long long)e->state.step, getpid());
}

static void say_round(const struct elastic *e)
{
    char what[64];
    snprintf(what, sizeof(what), "epoch-round %lld", (long long)e->round);
    say(e, what);
}

static void stamp(const struct elastic *e, const char *what)
{
    const char *path = option(e->argc, e->argv, "--stamp", NULL);
    char line[128];
    struct timespec now;
    if (path == NULL)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(line, sizeof(line), "%s %lld.%06ld %d %d\n", what, (long long)now.tv_sec,
                          now.tv_nsec / 1000, getpid(), e->worker.global.rank);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        give_up(e->worker.global.rank, "%s: %s", path, strerror(errno));
    write_all(fd, line, (size_t)length);
    close(fd);
}

/* One collective. False: a peer is gone, or silent for longer than Gloo waits. */
static bool collect(struct elastic *e, enum kind kind, struct message mine)
{
    struct context *global = &e->contexts[0];
    mine.magic = MAGIC;
    mine.kind = kind;
    free(e->all);
    e->all = allocate((size_t)global->place.size * sizeof(*e->all));
    if (!gather(global, &mine, sizeof(mine), e->all, e->worker.timeout_ms))
        return false;
    for (int i = 0; i < global->place.size; i++) {
        if (e->all[i].magic != MAGIC || e->all[i].kind != kind)
            violation(e->worker.global.rank, "rank %d is at another place of the program", i);
        if (kind == STEP && e->all[i].step != mine.step)
            violation(e->worker.global.rank, "rank %d is at step %lld, not %lld", i,
                      (long long)e->all[i].step, (long long)mine.step);
    }
    return true;
}

/* The real workers do not do this: it finds what would make them hang or lose their state. */
static enum outcome agree(struct elastic *e)
{
    struct message mine = {.round = e->round, .skip = e->skip_sync, .fresh = e->fresh};
    now_doing = "agree on the round";
    mine.step = e->saved.step;
    if (!collect(e, AGREE, mine))
        return LOST;
    for (int i = 0; i < e->worker.global.size; i++) {
        if (e->all[i].skip != mine.skip)
            violation(e->worker.global.rank,
                      "rank %d and this one do not agree on whether the state is to be sent "
                      "(skip_sync): a \"removed\" notification, but somebody is new",
                      i);
        if (e->all[0].fresh && !e->all[i].fresh && e->all[i].step > 0)
            violation(e->worker.global.rank,
                      "rank 0 is new, and the state of step %lld in rank %d is lost",
                      (long long)e->all[i].step, i);
        if (e->all[i].round > e->round)
            e->round = e->all[i].round;
    }
    e->round++;
    return GO_ON;
}

static enum outcome synchronise(struct elastic *e)
{
    struct message mine = {.step = e->saved.step, .checksum = e->saved.checksum};
    now_doing = "synchronise the state";
    if (!collect(e, SYNC, mine))
        return LOST;
    e->saved = (struct state){.step = e->all[0].step, .checksum = e->all[0].checksum};
    e->state = e->saved;
    return GO_ON;
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9u;
    return value ^ value >> 32;
}

/* The part of one rank of so many in the sum of a step; of all: 0 of 1. */
static int64_t share(int64_t step_now, int rank, int size)
{
    int64_t sum = 0;
    for (int64_t item = rank; item < ITEMS; item += size)
        sum += (int64_t)(mix((uint64_t)(step_now * ITEMS + item)) >> 24);
    return sum;
}

static bool is_due(struct elastic *e, const char *name, struct fault *fault)
{
    return fault_due(e->argc, e->argv, name, e->worker.global.rank, e->state.step, false, fault);
}

static void do_faults(struct elastic *e)
{
    struct fault fault;
    if (is_due(e, "--crash", &fault)) {
        say(e, "crash");
        raise(SIGKILL);
    }
    if (is_due(e, "--exit", &fault)) {
        say(e, "exit");
        exit((int)fault.number);
    }
    if (is_due(e, "--exit0", &fault)) {
        say(e, "exit0");
        exit(0);
    }
    if (is_due(e, "--hang", &fault)) {
        say(e, "hang");
        now_doing = "hang";
        wait_for_ever();
    }
    if (is_due(e, "--never-ask", &fault)) {
        say(e, "never-ask");
        e->never_ask = true;
    }
}

static enum outcome train_step(struct elastic *e)
{
    const int size = e->worker.global.size;
    struct message mine = {.step = e->state.step, .ones = 1};
    int64_t sum = 0, ones = 0;
    now_doing = "train";
    do_faults(e);
    pause_ms((long)e->step_ms);
    mine.sum = share(e->state.step, e->worker.global.rank, size);
    if (!collect(e, STEP, mine))
        return LOST;
    for (int i = 0; i < size; i++) {
        sum += e->all[i].sum;
        ones += e->all[i].ones;
    }
    if (ones != size || sum != share(e->state.step, 0, 1))
        violation(e->worker.global.rank, "the sum of step %lld is wrong: ranks or sizes differ",
                  (long long)e->state.step);
    e->state.step++;
    e->state.checksum = mix(e->state.checksum ^ (uint64_t)sum);
    if (e->first_step || flag(e->argc, e->argv, "--stamp-steps"))
        stamp(e, e->first_step ? "first-step" : "step");
    e->first_step = false;
    if (e->progress > 0 && e->state.step % e->progress == 0)
        say_round(e);
    return GO_ON;
}

/* What of the notifications counts: those later than all before. */
static void look_at_notices(struct elastic *e, struct message *mine)
{
    struct notice waiting[NOTICES_MAX];
    int count = notices_take(&e->notices, waiting);
    mine->before = mine->newest = e->newest;
    for (int i = 0; i < count; i++) {
        if (waiting[i].timestamp > mine->newest) {
            mine->newest = waiting[i].timestamp;
            mine->result |= waiting[i].res;
        } else {
            dprintf(1, "ignored timestamp %lld\n", (long long)waiting[i].timestamp);
        }
    }
}

/* Keeps the state, and asks rank 0 whether hosts have changed. */
static enum outcome commit(struct elastic *e)
{
    const char *until = option(e->argc, e->argv, "--until", NULL);
    struct message mine = {.may_end = until == NULL || access(until, F_OK) == 0};
    now_doing = "commit";
    e->saved = e->state;
    look_at_notices(e, &mine);
    if (!collect(e, COMMIT, mine))
        return LOST;
    e->newest = e->all[0].newest;
    if (e->all[0].newest > e->all[0].before) {
        e->skip_sync = e->all[0].result == 1;
        return UPDATED;
    }
    return e->state.step >= e->steps && e->all[0].may_end ? ALL_DONE : GO_ON;
}

static enum outcome train(struct elastic *e)
{
    enum outcome outcome = GO_ON;
    while (outcome == GO_ON) {
        bool idle = e->state.step >= e->steps;
        if (idle)
            pause_ms(e->step_ms > 0 ? (long)e->step_ms : 1);
        else
            outcome = train_step(e);
        if (outcome == GO_ON && (e->state.step >= e->steps || e->state.step % e->commit_every == 0))
            outcome = commit(e);
    }
    if (outcome == ALL_DONE) {
        now_doing = "end";
        if (!collect(e, END, (struct message){0}))
            return LOST;
    }
    return outcome;
}
