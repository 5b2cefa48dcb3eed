/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for a Horovod worker whose training is wrapped in @hvd.elastic.run: the rendezvous and
 * mesh of horovod_mesh.h, the registration and notification service of the elastic layer, and its
 * loop of synchronise, train, roll back, reset. Written from observed traffic; no code of Horovod
 * is in it.
 *
 *   elastic_horovod [--steps N] [--step-ms MS] [--commit N] [--until FILE] [--progress [K]]
 *                   [--stamp FILE] [--alarm SECONDS] [--once FOLDER] [--import-ms LOW[:HIGH]]
 *                   [--import-until FILE] [--stamp-steps] [--old-gloo] [faults]
 *
 * The training sums numbers that it deals out among the ranks. Whatever happens on the way, the
 * result depends only on the number of steps. Rank 0 prints it: "final steps=N checksum=X". With
 * --until it goes on with idle steps (and commits) after the last one until the file exists. The
 * imports of a new process: see import_modules(). --old-gloo leaves out what old versions do not
 * do.
 *
 * Faults, each RANK@STEP, by the present rank (or `all`), before that step's collective:
 *   --crash R@S[:TIMES]   SIGKILL to itself
 *   --exit R@S:CODE       exits so; --exit0 R@S with 0, long before the end
 *   --hang R@S            never takes part in that collective; its connections stay open
 *   --never-ask R@S       from then on, after the next failure, does not ask for its new place
 *   --crash-answer R@S[:TIMES]  after step S, given rank R again, dies before the rendezvous
 *   --crash-rejoin R@S[:TIMES]  the same, but in the rendezvous, before it stores an address
 *
 * Lines on stdout: "epoch-round K rank R/N host H local L step S pid P" whenever a round begins,
 * and every K steps with --progress; the same with "lost", "updated" or "updated skip_sync" when
 * one ends, and with the name of a fault before it happens; "notified|ignored|dropped timestamp T".
 * K is counted over the whole job as long as somebody survives. On stderr "VIOLATION: ..." when the
 * launcher breaks the protocol and "ABORT: ..." where the original would abort for other reasons;
 * both end with abort(). --stamp appends "asked|answered|first-step SECONDS PID RANK" lines,
 * CLOCK_MONOTONIC; with --stamp-steps also "step ..." for every other step. After --alarm seconds
 * (120) it says where it is and aborts.
 */
#include "elastic_horovod_training.h"

static void store(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* Exactly six numbers, joined by commas. */
static void read_place(const struct elastic *e, const struct answer *answer, int value[6])
{
    const char *at = answer->body;
    bool good = answer->status == 200 && strlen(answer->body) == answer->length;
    for (int i = 0; i < 6 && good; i++) {
        char *end = NULL;
        good = (*at >= '0' && *at <= '9') || (*at == '-' && at[1] == '1');
        value[i] = (int)strtol(at, &end, 10);
        good = good && *end == (i < 5 ? ',' : '\0');
        at = end + 1;
    }
    bool removed = good && value[0] == -1;
    for (int i = 0; i < 6 && removed; i++)
        good = good && value[i] == -1;
    for (int i = 0; i < 6 && good && !removed; i += 2)
        good = value[i] >= 0 && value[i] < value[i + 1];
    if (!good)
        violation(e->worker.global.rank, "rank_and_size: status %d, \"%s\"", answer->status,
                  answer->body);
}

static void ask_for_place(struct elastic *e)
{
    static const char *const names[6] = {"HOROVOD_RANK",       "HOROVOD_SIZE",
                                         "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                                         "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"};
    struct worker *worker = &e->worker;
    char key[320];
    int value[6] = {0};
    snprintf(key, sizeof(key), "%s:%d", worker->hostname, worker->local.rank);
    now_doing = "ask for its new place";
    stamp(e, "asked");
    struct answer answer = client_request(&worker->client, "GET", "rank_and_size", key, NULL, 0);
    read_place(e, &answer, value);
    free(answer.body);
    if (value[0] == -1) {
        dprintf(2, "rank %d has been removed from elastic job\n", worker->global.rank);
        abort();
    }
    for (int i = 0; i < 6; i++)
        store(names[i], value[i]);
    worker->global = (struct place){value[0], value[1]};
    worker->local = (struct place){value[2], value[3]};
    worker->cross = (struct place){value[4], value[5]};
    worker->client.rank = worker->global.rank;
    stamp(e, "answered");
}

static void join(struct elastic *e)
{
    now_doing = "rendezvous";
    e->worker.init =
        (uint32_t)e->worker.global.size; /* an address of a larger or smaller epoch shows */
    contexts_open(&e->worker, e->contexts);
    e->first_step = true;
}

/* Shutdown, and init anew. Notifications that came meanwhile are thrown away, as by the original.
 */
static void reset(struct elastic *e)
{
    struct notice waiting[NOTICES_MAX];
    struct fault fault;
    contexts_close(e->contexts);
    if (e->never_ask) {
        now_doing = "hang instead of asking";
        wait_for_ever();
    }
    ask_for_place(e);
    if (fault_due(e->argc, e->argv, "--crash-answer", e->worker.global.rank, e->state.step, true,
                  &fault))
        raise(SIGKILL);
    if (fault_due(e->argc, e->argv, "--crash-rejoin", e->worker.global.rank, e->state.step, true,
                  &fault))
        e->worker.die_before_put = e->worker.global.rank;
    join(e);
    int dropped = notices_take(&e->notices, waiting);
    for (int i = 0; i < dropped; i++)
        dprintf(1, "dropped timestamp %lld\n", (long long)waiting[i].timestamp);
}

/* The loop of @hvd.elastic.run. */
static void run(struct elastic *e)
{
    for (;;) {
        enum outcome outcome = agree(e);
        if (outcome == GO_ON && !e->skip_sync)
            outcome = synchronise(e);
        if (outcome == GO_ON) {
            e->fresh = false;
            say_round(e);
            outcome = train(e);
        }
        if (outcome == ALL_DONE)
            return;
        if (outcome == LOST) {
            say(e, "lost");
            e->state = e->saved;
            e->skip_sync = false;
        } else {
            say(e, e->skip_sync ? "updated skip_sync" : "updated");
        }
        reset(e);
    }
}

static void need(const char *name, const char *value)
{
    const char *text = getenv(name);
    if (text == NULL || (value != NULL && strcmp(text, value) != 0)) {
        dprintf(2, "VIOLATION: elastic_horovod: %s is %s%s%s\n", name,
                text != NULL ? text : "not set", value != NULL ? ", not " : "",
                value != NULL ? value : "");
        exit(2);
    }
}

static long number_of(const struct elastic *e, const char *name, const char *otherwise)
{
    return to_number(option(e->argc, e->argv, name, otherwise));
}

static void set_up(struct elastic *e)
{
    const struct rlimit no_core = {0, 0};
    need("HOROVOD_ELASTIC", "1");
    need("HOROVOD_CONTROLLER", "gloo");
    need("HOROVOD_CPU_OPERATIONS", "gloo");
    need("HOROVOD_GLOO_RENDEZVOUS_ADDR", NULL);
    need("HOROVOD_GLOO_RENDEZVOUS_PORT", NULL);
    need("HOROVOD_GLOO_IFACE", NULL);
    worker_read(&e->worker, getenv("HOROVOD_GLOO_RENDEZVOUS_ADDR"),
                getenv("HOROVOD_GLOO_RENDEZVOUS_PORT"));
    e->steps = number_of(e, "--steps", "50");
    e->step_ms = number_of(e, "--step-ms", "10");
    e->commit_every = number_of(e, "--commit", "5");
    const char *every = option(e->argc, e->argv, "--progress", "");
    if (flag(e->argc, e->argv, "--progress"))
        e->progress = every[0] >= '1' && every[0] <= '9' ? to_number(every) : 1;
    e->worker.old = flag(e->argc, e->argv, "--old-gloo");
    e->fresh = true;
    setrlimit(RLIMIT_CORE, &no_core);
    raise_descriptor_limit();
    signal(SIGALRM, out_of_time);
    alarm((unsigned)number_of(e, "--alarm", "120"));
}

int main(int argc, char **argv)
{
    struct elastic *e = allocate(sizeof(*e));
    e->argc = argc;
    e->argv = argv;
    set_up(e);
    now_doing = "import";
    import_modules(&e->worker, argc, argv);
    join(e);
    now_doing = "register";
    notices_start(&e->notices, e->worker.global.rank);
    register_worker(&e->worker, &e->notices);
    run(e);
    if (e->worker.global.rank == 0)
        dprintf(1, "final steps=%lld checksum=%016llx\n", (long long)e->state.step,
                (unsigned long long)e->state.checksum);
    contexts_close(e->contexts);
    return 0;
}
