/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for a Horovod worker with the Gloo controller: the same environment, the same requests
 * in the same order, the same ways to fail, and a real TCP mesh between the ranks, so that a wrong
 * or stale address makes it fail as the real one would. Written from observed traffic; no code of
 * Horovod is in it.
 *
 *   horovod_worker [--steps N] [--reinit K] [--exit-rank R [--exit-code C]] [--die-before-put R]
 *                  [--verbose] [--import-ms LOW[:HIGH]] [--import-until FILE]
 *
 * Each init sets up six contexts: global, local, cross, and the same for the first process set.
 * Then N allreduces sum the rank numbers, and the rank prints "rank R of N: sum S".
 *
 *   --reinit K           shuts down and inits again K times
 *   --exit-rank R        rank R exits after its first init with status C
 *   --die-before-put R   rank R kills itself before it stores its first address
 *   --verbose            prints the number of requests and the milliseconds of each init on stderr
 *   --import-...         see import_modules()
 *
 * A protocol error, a time-out or a peer that vanishes during init: abort(). A peer that vanishes
 * later: exit 1, as the Python exception does. Without a rendezvous address: a world of one, and it
 * says "size 1".
 */
#include "horovod_mesh.h"

/* In an elastic job every init but the first asks for the new place. */
static void ask_for_place(struct worker *worker)
{
    char key[320];
    int value[6];
    snprintf(key, sizeof(key), "%s:%d", worker->hostname, worker->local.rank);
    struct answer answer = client_request(&worker->client, "GET", "rank_and_size", key, NULL, 0);
    char *place = answer.body;
    for (int i = 0; i < 6; i++) {
        char *end = place;
        value[i] = answer.status == 200 ? (int)strtol(place, &end, 10) : 0;
        if (end == place || (i < 5 && *end != ','))
            violation(worker->global.rank, "/rank_and_size/%s: status %d, \"%s\"", key,
                      answer.status, answer.body);
        place = end + 1;
    }
    free(answer.body);
    if (value[0] == -1)
        give_up(worker->global.rank, "has been removed from elastic job");
    worker->global = (struct place){value[0], value[1]};
    worker->local = (struct place){value[2], value[3]};
    worker->cross = (struct place){value[4], value[5]};
}

static void init(struct worker *worker, struct context contexts[CONTEXTS])
{
    const char *elastic = getenv("HOROVOD_ELASTIC");
    if (worker->init > 0 && elastic != NULL && strcmp(elastic, "1") == 0)
        ask_for_place(worker);
    contexts_open(worker, contexts);
}

static void lost(const struct worker *worker)
{
    dprintf(2, "rank %d: HorovodInternalError: a peer is gone\n", worker->global.rank);
    pause_ms(100); /* a Python interpreter unwinds and ends; none is gone within microseconds */
    exit(1);
}

static void work(struct worker *worker, struct context *global, int64_t steps)
{
    int64_t sum = 0, n = worker->global.size;
    for (int64_t i = 0; i < steps; i++) {
        if (!exchange(global, worker->global.rank, INT32_MAX, &sum))
            lost(worker);
        if (sum != n * (n - 1) / 2)
            violation(worker->global.rank, "allreduce gave %lld", (long long)sum);
    }
    dprintf(1, "rank %d of %d: sum %lld\n", worker->global.rank, worker->global.size,
            (long long)sum);
}

/* All ranks agree to shut down before anyone goes. */
static void shutdown_all(struct worker *worker, struct context contexts[CONTEXTS])
{
    int64_t sum;
    if (!exchange(&contexts[0], 1, INT32_MAX, &sum))
        lost(worker);
    contexts_close(contexts);
}

static void one_round(struct worker *worker, int argc, char **argv)
{
    struct context contexts[CONTEXTS];
    int64_t start = now_ms();
    long before = worker->client.requests;
    init(worker, contexts);
    if (flag(argc, argv, "--verbose"))
        dprintf(2, "rank %d: init %u: %ld requests, %lld ms\n", worker->global.rank, worker->init,
                worker->client.requests - before, (long long)(now_ms() - start));
    if (to_number(option(argc, argv, "--exit-rank", "-1")) == worker->global.rank)
        exit((int)to_number(option(argc, argv, "--exit-code", "1")));
    work(worker, &contexts[0], to_number(option(argc, argv, "--steps", "1")));
    shutdown_all(worker, contexts);
    worker->init++;
}

int main(int argc, char **argv)
{
    const char *host = getenv("HOROVOD_GLOO_RENDEZVOUS_ADDR");
    const char *port = getenv("HOROVOD_GLOO_RENDEZVOUS_PORT");
    const char *controller = getenv("HOROVOD_CONTROLLER");
    if (controller != NULL && strcmp(controller, "gloo") != 0) {
        dprintf(2, "horovod_worker: HOROVOD_CONTROLLER=%s, but this worker speaks Gloo only\n",
                controller);
        return 2;
    }
    if (host == NULL || port == NULL) {
        dprintf(1, "size 1\n");
        return 0;
    }
    if (controller == NULL) {
        dprintf(2, "horovod_worker: HOROVOD_CONTROLLER is not set: a real worker may pick MPI\n");
        return 2;
    }
    struct worker worker;
    worker_read(&worker, host, port);
    worker.die_before_put = (int)to_number(option(argc, argv, "--die-before-put", "-1"));
    raise_descriptor_limit();
    import_modules(&worker, argc, argv);
    int64_t rounds = 1 + to_number(option(argc, argv, "--reinit", "0"));
    for (int64_t i = 0; i < rounds; i++)
        one_round(&worker, argc, argv);
    return 0;
}
