/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check_steps_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/ask.h"
#include "driver/job/job_nodes.h"
#include "features/check/check.h"

#define ROUNDS 2         /* with the host behind it, and the one before it */
#define PORT_LEAST 20000 /* below those that the kernel gives to clients */
#define PORTS 10000
#define INTERFACE_MAX 32

/* Each host alone */

static void take_facts(struct check_host *host, const Hvdrun__GpusAnswer *answer)
{
    host->gpus = hvdrun__gpu_healths__unpack(NULL, answer->health.len, answer->health.data);
    if (host->gpus == NULL)
        host->gpus_missing = mem_strdup("the answer of its agent cannot be read");
    else if (answer->missing[0] != '\0')
        host->gpus_missing = mem_strdup(answer->missing);
    gpu_test_read((const char *)answer->test.data, answer->test.len, &host->gpu_test);
    if (answer->test_problem[0] != '\0')
        host->gpu_test_problem = mem_strdup(answer->test_problem);
}

void check_gpus_take(struct check_result *result, const struct ask *ask)
{
    for (size_t i = 0; i < ask->count; i++) {
        const struct ask_answer *answer = &ask->answers[i];
        struct check_host *host = &result->hosts[answer->node->index];
        if (answer->state == ASK_ANSWERED && answer->message != NULL)
            take_facts(host, (const Hvdrun__GpusAnswer *)answer->message);
        else if (answer->state == ASK_OWES)
            host->gpus_missing = mem_strdup("its agent did not answer in time");
    }
}

/* Two tests on one machine at once would disturb each other. */
void check_gpus_ask(struct job *job, const struct check_result *result, const char *python,
                    ask_done *done, void *context)
{
    static const struct question question = {&topic_gpus, NULL, .keep = true};
    int *first AUTO_FREE = check_first_names(result, false);
    Hvdrun__GpusRequest request = HVDRUN__GPUS_REQUEST__INIT;
    request.python = (char *)python;
    struct ask *ask =
        ask_begin(job, &question, GPU_FACTS_MS + GPU_TEST_MS + GPU_ANSWER_MS, done, context);
    for (int i = 0; i < result->count; i++) {
        if (first[i] == i && result->hosts[i].why == NULL && job->nodes[i]->state == NODE_UP)
            ask_node(ask, job->nodes[i], &request.base);
    }
}

/* Between hosts */

struct check_between {
    struct job *job;
    struct check_result *result;
    const char *python;
    int *hosts; /* that take part, by number */
    int count;
    int *peer; /* by number of a host: its partner in this round; -1: none */
    int round;
    void (*done)(void *context);
    void *context;
};

static void next_round(struct check_between *between);

static bool has_pytorch(const struct check_host *host)
{
    const struct gpu_test *test = &host->gpu_test;
    bool cpu = test->none != NULL && strncmp(test->none, "this PyTorch", 12) == 0;
    return host->gpus != NULL && host->gpus->n_gpus > 0 && (test->torch != NULL || cpu);
}

/* Of names that are one machine, only the first one takes part. But simulated hosts, which are all
 * this machine, may. */
static void choose_hosts(struct check_between *between)
{
    const struct check_result *result = between->result;
    int *first AUTO_FREE = check_first_names(result, false);
    for (int i = 0; i < result->count; i++) {
        const struct check_host *host = &result->hosts[i];
        bool is_one = first[i] == i || result->simulated;
        if (is_one && host->why == NULL && host->address != NULL &&
            has_pytorch(&result->hosts[first[i]]) && between->job->nodes[i]->state == NODE_UP)
            between->hosts[between->count++] = i;
    }
}

static void take_between(struct check_between *between, int number, const struct ask_answer *answer)
{
    struct check_host *host = &between->result->hosts[number];
    const Hvdrun__GpusAnswer *message = (const Hvdrun__GpusAnswer *)answer->message;
    struct gpu_test test = {.count = 0};
    if (answer->state != ASK_ANSWERED || message == NULL)
        return;
    gpu_test_read((const char *)message->test.data, message->test.len, &test);
    host->between_pairs += test.between > 0;
    if (test.between > host->between)
        host->between = test.between;
    if (message->test_problem[0] != '\0' && host->between_problem == NULL) {
        host->between_problem = mem_strdup(message->test_problem);
        host->between_peer = between->peer[number];
    }
    gpu_test_clear(&test);
}

static void between_answered(void *context, const struct ask *ask)
{
    struct check_between *between = context;
    for (size_t i = 0; i < ask->count; i++)
        take_between(between, ask->answers[i].node->index, &ask->answers[i]);
    next_round(between);
}

static void ask_one(struct check_between *between, struct ask *ask, int number, int rank,
                    const char *address, uint32_t port)
{
    char interface[INTERFACE_MAX] = "";
    Hvdrun__GpusRequest request = HVDRUN__GPUS_REQUEST__INIT;
    check_host_interface(&between->result->hosts[number], interface, sizeof(interface));
    request.python = (char *)between->python;
    request.between_address = (char *)address;
    request.between_port = port;
    request.between_rank = (uint32_t)rank;
    request.between_interface = interface;
    ask_node(ask, between->job->nodes[number], &request.base);
}

/* The pairs of a round, by their places among those that take part. false: it has none. */
static bool pair_up(struct check_between *between)
{
    int count = between->count;
    bool any = false;
    for (int i = 0; i < between->result->count; i++)
        between->peer[i] = -1;
    for (int i = between->round; i + 1 < count; i += 2) {
        any = true;
        between->peer[between->hosts[i]] = between->hosts[i + 1];
        between->peer[between->hosts[i + 1]] = between->hosts[i];
    }
    return any;
}

/* Most likely it is free. If not, the all-reduce fails, and says so. */
static uint32_t some_port(void)
{
    uint32_t number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
        number = (uint32_t)clock_mono_ns();
    return PORT_LEAST + number % PORTS;
}

/* It may have been lost in the round before. */
static bool is_up(const struct check_between *between, int number)
{
    return between->job->nodes[number]->state == NODE_UP;
}

/* Without its partner, a host would wait for it until its limit. */
static void run_round(struct check_between *between)
{
    static const struct question question = {&topic_gpus, NULL, .keep = true};
    struct ask *ask = ask_begin(between->job, &question, GPU_BETWEEN_MS + GPU_ANSWER_MS,
                                between_answered, between);
    for (int i = 0; i < between->result->count; i++) {
        int peer = between->peer[i];
        if (peer < i || !is_up(between, i) || !is_up(between, peer))
            continue;
        const char *address = between->result->hosts[i].address;
        uint32_t port = some_port();
        ask_one(between, ask, i, 0, address, port);
        ask_one(between, ask, peer, 1, address, port);
    }
}

static void next_round(struct check_between *between)
{
    while (++between->round < ROUNDS) {
        if (pair_up(between)) {
            run_round(between);
            return;
        }
    }
    between->done(between->context);
}

struct check_between *check_between_begin(struct job *job, struct check_result *result,
                                          const char *python, void (*done)(void *context),
                                          void *context)
{
    struct check_between *between =
        MEM_NEW((struct check_between){.job = job,
                                       .result = result,
                                       .python = python,
                                       .round = -1,
                                       .hosts = mem_array((size_t)result->count, sizeof(int)),
                                       .peer = mem_array((size_t)result->count, sizeof(int)),
                                       .done = done,
                                       .context = context});
    choose_hosts(between);
    next_round(between);
    return between;
}

void check_between_destroy(struct check_between *between)
{
    if (between == NULL)
        return;
    ask_forget(between->job, between);
    free(between->hosts);
    free(between->peer);
    free(between);
}
