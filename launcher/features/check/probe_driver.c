/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check_steps_driver.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "driver/job/ask.h"
#include "features/check/door.h"
#include "model/net/network.h"

/*
 * Which host connects to which in `hvdrun check`. Pure.
 *
 * Up to CHECK_ALL_PAIRS hosts, every host connects to every other host. Beyond that, each host
 * connects to the hosts that are 1, 2, 4, 8... places after it in the list, and these connect to
 * it. So several other hosts, near and far, test each host.
 *
 * Transfers run in rounds: a host takes part in at most one route of a round.
 */

#define NO_ROUND (-1)

static void add_both(struct check_route *routes, size_t *count, int one, int other)
{
    routes[(*count)++] = (struct check_route){one, other, NO_ROUND};
    routes[(*count)++] = (struct check_route){other, one, NO_ROUND};
}

/* Neighbours first, so that the rounds are full. */
static size_t make_routes(int hosts, struct check_route *routes)
{
    size_t count = 0;
    for (int step = 1; step <= hosts / 2; step = hosts <= CHECK_ALL_PAIRS ? step + 1 : 2 * step) {
        for (int i = 0; i < hosts; i++) {
            int other = (i + step) % hosts;
            if (2 * step == hosts && other < i)
                continue; /* the same two hosts again */
            add_both(routes, &count, i, other);
        }
    }
    return count;
}

static int compare_routes(const void *a, const void *b)
{
    const struct check_route *one = a, *other = b;
    if (one->from != other->from)
        return one->from < other->from ? -1 : 1;
    return (one->to > other->to) - (one->to < other->to);
}

/* Each round takes any route whose two hosts are free. */
static int make_rounds(struct check_route *routes, size_t count, int hosts)
{
    bool *busy AUTO_FREE = mem_array((size_t)hosts, sizeof(*busy));
    size_t left = count;
    int round = 0;
    for (; left > 0; round++) {
        memset(busy, 0, (size_t)hosts * sizeof(*busy));
        for (size_t i = 0; i < count; i++) {
            struct check_route *route = &routes[i];
            if (route->round != NO_ROUND || busy[route->from] || busy[route->to])
                continue;
            route->round = round;
            busy[route->from] = busy[route->to] = true;
            left--;
        }
    }
    return round;
}

struct check_route *check_plan(int hosts, size_t *count, int *rounds)
{
    size_t most = (size_t)hosts * 2 * CHECK_ALL_PAIRS;
    struct check_route *routes = mem_array(most > 0 ? most : 1, sizeof(*routes));
    *count = make_routes(hosts, routes);
    *rounds = make_rounds(routes, *count, hosts);
    if (*count > 1)
        qsort(routes, *count, sizeof(*routes), compare_routes);
    return routes;
}

#define CONNECT_MS 5000
#define TRANSFER_MS 200
#define SLACK_MS 5000 /* for the agents' own delays */

enum phase { OPENING, TRYING, SENDING, OVER };

struct probe_host {
    bool in;       /* it takes part */
    uint32_t port; /* 0: it does not listen */
    uint8_t token[CHECK_TOKEN];
};

struct check_probe {
    struct job *job;
    struct check_result *result;
    bool net;
    void (*done)(void *context);
    void *context;
    enum phase phase;
    struct probe_host *hosts; /* by number of the host */
    int rounds, round;
    struct loop_timer *end; /* calls `done` */
};

static void begin_step(struct check_probe *probe);

static void over(struct check_probe *probe)
{
    probe->phase = OVER;
    loop_timer_set(probe->end, 0);
}

/* Addresses */

static int collect(const struct check_probe *probe, struct network_node *nodes, int *hosts)
{
    int count = 0;
    for (int i = 0; i < probe->result->count; i++) {
        const struct check_host *host = &probe->result->hosts[i];
        if (host->why != NULL || host->facts == NULL)
            continue;
        nodes[count] = (struct network_node){.name = host->name,
                                             .boot_id = host->hello->boot_id,
                                             .interfaces = host->hello->interfaces,
                                             .interface_count = host->hello->n_interfaces,
                                             .reached_by = host->peer};
        hosts[count++] = i;
    }
    return count;
}

/* Chooses addresses as a job does. Returns how many hosts have one. */
static int choose_addresses(struct check_probe *probe)
{
    size_t room = (size_t)probe->result->count;
    struct network_node *nodes AUTO_FREE = mem_array(room, sizeof(*nodes));
    int *hosts AUTO_FREE = mem_array(room, sizeof(*hosts));
    char **addresses AUTO_FREE = mem_array(room, sizeof(*addresses));
    struct error err = ERROR_INIT;
    const struct strv *allowed = &probe->job->settings->network_interfaces;
    int count = collect(probe, nodes, hosts), taking_part = 0;
    if (count == 0)
        return 0;
    if (network_choose(nodes, count, false, allowed->count > 0 ? allowed->items : NULL, addresses,
                       &err) < 0) {
        probe->result->network_problem = mem_strdup(err.text);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        struct check_host *host = &probe->result->hosts[hosts[i]];
        if (addresses[i][0] != '\0') {
            host->address = addresses[i];
            probe->hosts[hosts[i]].in = true;
            taking_part++;
        } else {
            host->door_problem =
                mem_strdup("other hosts cannot reach it: only its loopback interface is up");
            free(addresses[i]);
        }
    }
    return taking_part;
}

/* Links among the hosts that take part, by the numbers of the hosts. */
static void make_links(struct check_probe *probe)
{
    struct check_result *result = probe->result;
    int *hosts AUTO_FREE = mem_array((size_t)result->count, sizeof(*hosts));
    int count = 0;
    for (int i = 0; i < result->count; i++) {
        if (probe->hosts[i].in)
            hosts[count++] = i;
    }
    struct check_route *routes AUTO_FREE = check_plan(count, &result->link_count, &probe->rounds);
    result->links = mem_array(result->link_count, sizeof(*result->links));
    for (size_t i = 0; i < result->link_count; i++) {
        result->links[i] = (struct check_link){
            .from = hosts[routes[i].from], .to = hosts[routes[i].to], .round = routes[i].round};
    }
}

/* Steps */

static void open_doors(struct check_probe *probe, struct ask *ask)
{
    for (int i = 0; i < probe->result->count; i++) {
        Hvdrun__Probe message = HVDRUN__PROBE__INIT;
        struct probe_host *host = &probe->hosts[i];
        if (!host->in)
            continue;
        message.listen = probe->result->hosts[i].address;
        message.token = (ProtobufCBinaryData){CHECK_TOKEN, host->token};
        ask_node(ask, probe->job->nodes[i], &message.base);
    }
}

/* Whether this step uses the link: in TRYING all of them, in SENDING the links of the present
 * round that were reached. */
static bool is_wanted(const struct check_probe *probe, const struct check_link *link)
{
    if (!probe->hosts[link->from].in || probe->hosts[link->to].port == 0)
        return false;
    if (probe->phase == TRYING)
        return true;
    return link->round == probe->round && probe->hosts[link->to].in && link->tried &&
           link->outcome == HVDRUN__PROBE_OUTCOME__PROBE_REACHED;
}

static void send_peers(struct check_probe *probe, struct ask *ask, size_t first, size_t end)
{
    const struct check_result *result = probe->result;
    Hvdrun__ProbePeer *peers AUTO_FREE = mem_array(end - first, sizeof(*peers));
    Hvdrun__ProbePeer **pointers AUTO_FREE = mem_array(end - first, sizeof(*pointers));
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        int to = result->links[i].to;
        if (!is_wanted(probe, &result->links[i]))
            continue;
        peers[count] = (Hvdrun__ProbePeer)HVDRUN__PROBE_PEER__INIT;
        peers[count].node = (uint32_t)to;
        peers[count].address = result->hosts[to].address;
        peers[count].port = probe->hosts[to].port;
        peers[count].token = (ProtobufCBinaryData){CHECK_TOKEN, probe->hosts[to].token};
        pointers[count] = &peers[count];
        count++;
    }
    if (count == 0)
        return;
    Hvdrun__Probe message = HVDRUN__PROBE__INIT;
    message.peers = pointers;
    message.n_peers = count;
    message.limit_ms = CONNECT_MS;
    message.transfer_ms = probe->phase == SENDING ? TRANSFER_MS : 0;
    ask_node(ask, probe->job->nodes[result->links[first].from], &message.base);
}

static void call_peers(struct check_probe *probe, struct ask *ask)
{
    const struct check_result *result = probe->result;
    for (size_t first = 0, end = 0; first < result->link_count; first = end) {
        while (end < result->link_count && result->links[end].from == result->links[first].from)
            end++;
        send_peers(probe, ask, first, end);
    }
}

static void show_round(const struct check_probe *probe)
{
    char line[64];
    snprintf(line, sizeof(line), "measuring: round %d of %d", probe->round + 1, probe->rounds);
    output_progress(probe->job->output, line);
}

/* Answers */

static void take_first(struct check_link *link, const Hvdrun__ProbeResult *result)
{
    link->tried = true;
    link->outcome = result->outcome <= HVDRUN__PROBE_OUTCOME__PROBE_BROKEN
                        ? result->outcome
                        : HVDRUN__PROBE_OUTCOME__PROBE_BROKEN;
    link->connect_us = (int64_t)result->connect_us;
    snprintf(link->source, sizeof(link->source), "%s", result->source);
    mem_replace(&link->text, result->text[0] == '\0' ? NULL : result->text);
}

static void take_transfer(struct check_link *link, const Hvdrun__ProbeResult *result)
{
    if (result->outcome == HVDRUN__PROBE_OUTCOME__PROBE_REACHED && result->transfer_us > 0) {
        link->bytes = result->bytes;
        link->transfer_us = (int64_t)result->transfer_us;
    } else if (link->transfer_problem == NULL) {
        link->transfer_problem =
            mem_strdup(result->text[0] == '\0' ? "a second connection failed" : result->text);
    }
}

static void take(struct check_probe *probe, int host, const Hvdrun__Probed *message)
{
    if (probe->phase == OPENING) {
        probe->hosts[host].port = message->port;
        if (message->problem[0] != '\0')
            probe->result->hosts[host].door_problem = mem_strdup(message->problem);
    }
    for (size_t i = 0; i < message->n_results; i++) {
        const Hvdrun__ProbeResult *result = message->results[i];
        struct check_link *link = check_result_find(probe->result, host, (int)result->node);
        if (link != NULL && probe->phase == TRYING)
            take_first(link, result);
        else if (link != NULL && probe->phase == SENDING)
            take_transfer(link, result);
    }
}

static void next_step(struct check_probe *probe)
{
    if (probe->phase == OPENING) {
        probe->phase = TRYING;
    } else if (probe->phase == TRYING) {
        probe->phase = probe->net && probe->rounds > 0 ? SENDING : OVER;
    } else if (probe->phase == SENDING) {
        probe->round++;
        probe->phase = probe->round < probe->rounds ? SENDING : OVER;
    }
    if (probe->phase == OVER)
        over(probe);
    else
        begin_step(probe);
}

/* A host that has not answered by now hangs. */
static void step_over(void *context, const struct ask *ask)
{
    struct check_probe *probe = context;
    if (probe->job->state >= JOB_ENDING)
        return;
    for (size_t i = 0; i < ask->count; i++) {
        const struct ask_answer *answer = &ask->answers[i];
        if (answer->state == ASK_ANSWERED)
            take(probe, answer->node->index, (const Hvdrun__Probed *)answer->message);
        else if (answer->state == ASK_OWES)
            node_link_give_up(answer->node, "its agent stopped answering");
    }
    next_step(probe);
}

static void begin_step(struct check_probe *probe)
{
    static const struct question question = {&topic_probe, NULL, .keep = true};
    int64_t limit_ms = SLACK_MS;
    if (probe->phase != OPENING)
        limit_ms += 2 * CONNECT_MS + TRANSFER_MS;
    if (probe->phase == SENDING)
        show_round(probe);
    struct ask *ask = ask_begin(probe->job, &question, limit_ms, step_over, probe);
    if (probe->phase == OPENING)
        open_doors(probe, ask);
    else
        call_peers(probe, ask);
}

static void end(void *context)
{
    const struct check_probe *probe = context;
    output_progress(probe->job->output, NULL);
    probe->done(probe->context);
}

void check_probe_host_failed(struct check_probe *probe, int host)
{
    probe->hosts[host].in = false;
}

/* Create and destroy */

static int make_tokens(struct check_probe *probe)
{
    for (int i = 0; i < probe->result->count; i++) {
        if (getrandom(probe->hosts[i].token, CHECK_TOKEN, 0) != CHECK_TOKEN)
            return errno == 0 ? EIO : errno;
    }
    return 0;
}

struct check_probe *check_probe_begin(struct job *job, struct check_result *result, bool net,
                                      void (*done)(void *context), void *context)
{
    struct check_probe *probe = MEM_NEW((struct check_probe){
        .job = job, .result = result, .net = net, .done = done, .context = context});
    probe->hosts = mem_array((size_t)result->count, sizeof(*probe->hosts));
    probe->end = loop_timer_create(job->loop, end, probe);
    result->silence_s = CONNECT_MS / 1000;
    int errnum = make_tokens(probe);
    if (errnum != 0)
        result->network_problem = mem_printf("cannot get random numbers: %s", strerror(errnum));
    if (errnum != 0 || choose_addresses(probe) < 2) {
        over(probe);
        return probe;
    }
    make_links(probe);
    begin_step(probe);
    return probe;
}

void check_probe_destroy(struct check_probe *probe)
{
    if (probe == NULL)
        return;
    ask_forget(probe->job, probe);
    loop_timer_destroy(probe->end);
    free(probe->hosts);
    free(probe);
}
