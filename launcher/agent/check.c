/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/check_door.h"
#include "agent/check_socket.h"
#include "agent/check_test.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/loop.h"
#include "node/health.h"
#include "pmix/pmix_server.h"
#include "wire/control.pb-c.h"

/*
 * The calling end of a probe (check_socket.h): one connection to another node, and its result.
 *
 *   state        connected   answer right   sent for transfer_ms   count heard   limit over, error
 *   CONNECTING   GREETING                                                        over
 *   GREETING                 SENDING, over                                       over
 *   SENDING                                 COUNTING                             over
 *   COUNTING                                                       over          over
 * Without a transfer the call is over when the answer is right.
 */

#define CHUNK ((size_t)256 << 10)
#define CHUNKS_IN_A_ROW 16     /* then others get their turn */
#define UNSENT_MAX (256 << 10) /* in the kernel: else a slow network takes long to empty it */

enum state { CONNECTING, GREETING, SENDING, COUNTING, OVER };

struct check_call {
    struct loop *loop;
    enum state state;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    int64_t limit_ms, transfer_ms, begun_ns, transfer_begun_ns;
    uint8_t token[CHECK_TOKEN];
    uint8_t heard[CHECK_TOKEN]; /* the answer, then the count */
    size_t heard_length;
    uint8_t *chunk;
    struct check_call_result result;
    void (*done)(void *context, const struct check_call_result *result);
    void *context;
};

void check_call_cancel(struct check_call *call)
{
    if (call == NULL)
        return;
    loop_timer_destroy(call->timer);
    loop_fd_destroy(call->watch);
    fd_close(&call->fd);
    free(call->chunk);
    free(call);
}

/* `done` never comes from within check_call_begin(): the timer calls it. */
static void over(struct check_call *call, Hvdrun__ProbeOutcome outcome)
{
    call->state = OVER;
    call->result.outcome = outcome;
    if (call->watch != NULL)
        loop_fd_watch(call->watch, 0);
    loop_timer_set(call->timer, 0);
}

static void broken(struct check_call *call, int errnum)
{
    char text[64];
    snprintf(call->result.text, sizeof(call->result.text), "%s",
             strerror_r(errnum, text, sizeof(text)));
    over(call, HVDRUN__PROBE_OUTCOME__PROBE_BROKEN);
}

static void not_connected(struct check_call *call, int errnum)
{
    switch (errnum) {
    case ECONNREFUSED: over(call, HVDRUN__PROBE_OUTCOME__PROBE_REFUSED); break;
    case ETIMEDOUT: over(call, HVDRUN__PROBE_OUTCOME__PROBE_SILENCE); break;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRNOTAVAIL: over(call, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE); break;
    default: broken(call, errnum); break;
    }
}

static void connected(struct check_call *call)
{
    int errnum = 0;
    socklen_t length = sizeof(errnum);
    if (getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &errnum, &length) < 0)
        errnum = errno;
    if (errnum != 0) {
        not_connected(call, errnum);
        return;
    }
    call->result.connect_ns = clock_mono_ns() - call->begun_ns;
    check_socket_own(call->fd, call->result.source);
    if (fd_send_all(call->fd, call->token, CHECK_TOKEN) < 0) {
        broken(call, errno);
        return;
    }
    call->state = GREETING;
    loop_fd_watch(call->watch, LOOP_READ);
}

/* Up to `wanted` bytes in all; true when they are there. */
static bool hear(struct check_call *call, size_t wanted)
{
    ssize_t got = fd_read(call->fd, call->heard + call->heard_length, wanted - call->heard_length);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got > 0)
        call->heard_length += (size_t)got;
    else if (call->state == GREETING && (got == 0 || errno == ECONNRESET))
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
    else
        broken(call, got == 0 ? EPIPE : errno);
    return got > 0 && call->heard_length == wanted;
}

static void begin_sending(struct check_call *call)
{
    int unsent = UNSENT_MAX;
    (void)setsockopt(call->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    call->chunk = mem_alloc(CHUNK);
    call->heard_length = 0;
    call->state = SENDING;
    call->transfer_begun_ns = clock_mono_ns();
    loop_timer_set(call->timer, call->transfer_ms);
    loop_fd_watch(call->watch, LOOP_WRITE);
}

static void hear_answer(struct check_call *call)
{
    uint8_t right[CHECK_TOKEN];
    if (!hear(call, CHECK_TOKEN))
        return;
    check_token_answer(call->token, right);
    if (memcmp(right, call->heard, CHECK_TOKEN) != 0)
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_STRANGER);
    else if (call->transfer_ms > 0)
        begin_sending(call);
    else
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
}

static void send_more(struct check_call *call)
{
    for (int i = 0; i < CHUNKS_IN_A_ROW; i++) {
        ssize_t sent = send(call->fd, call->chunk, CHUNK, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            broken(call, errno);
        if (sent < 0)
            return;
    }
}

static void hear_count(struct check_call *call)
{
    if (!hear(call, CHECK_COUNT))
        return;
    call->result.bytes = check_count_get(call->heard);
    call->result.transfer_ns = clock_mono_ns() - call->transfer_begun_ns;
    over(call, HVDRUN__PROBE_OUTCOME__PROBE_REACHED);
}

static void socket_ready(void *context, int what)
{
    struct check_call *call = context;
    (void)what;
    switch (call->state) {
    case CONNECTING: connected(call); break;
    case GREETING: hear_answer(call); break;
    case SENDING: send_more(call); break;
    case COUNTING: hear_count(call); break;
    case OVER: break;
    }
}

static void stop_sending(struct check_call *call)
{
    call->state = COUNTING;
    loop_timer_set(call->timer, call->limit_ms);
    if (shutdown(call->fd, SHUT_WR) < 0)
        broken(call, errno);
    else
        loop_fd_watch(call->watch, LOOP_READ);
}

static void timer_fired(void *context)
{
    struct check_call *call = context;
    if (call->state == SENDING) {
        stop_sending(call);
        return;
    }
    if (call->state != OVER)
        call->result.outcome = call->state == COUNTING ? HVDRUN__PROBE_OUTCOME__PROBE_BROKEN
                                                       : HVDRUN__PROBE_OUTCOME__PROBE_SILENCE;
    if (call->state == COUNTING)
        snprintf(call->result.text, sizeof(call->result.text),
                 "the data that was sent did not arrive in time");
    struct check_call_result result = call->result;
    void (*done)(void *, const struct check_call_result *) = call->done;
    void *whom = call->context;
    check_call_cancel(call);
    done(whom, &result);
}

static void dial(struct check_call *call, const struct sockaddr_storage *to, socklen_t length)
{
    call->fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->fd < 0) {
        broken(call, errno);
        return;
    }
    if (connect(call->fd, (const struct sockaddr *)to, length) < 0 && errno != EINPROGRESS) {
        not_connected(call, errno);
        return;
    }
    call->watch = loop_fd_create(call->loop, call->fd, socket_ready, call);
    loop_fd_watch(call->watch, LOOP_WRITE);
    loop_timer_set(call->timer, call->limit_ms);
}

struct check_call *
check_call_begin(struct loop *loop, const Hvdrun__ProbePeer *peer, int64_t limit_ms,
                 int64_t transfer_ms,
                 void (*done)(void *context, const struct check_call_result *result), void *context)
{
    struct sockaddr_storage to;
    socklen_t length;
    struct check_call *call = mem_alloc(sizeof(*call));
    *call = (struct check_call){.loop = loop,
                                .fd = -1,
                                .limit_ms = limit_ms,
                                .transfer_ms = transfer_ms,
                                .begun_ns = clock_mono_ns(),
                                .done = done,
                                .context = context};
    call->timer = loop_timer_create(loop, timer_fired, call);
    if (peer->token.len == CHECK_TOKEN)
        memcpy(call->token, peer->token.data, CHECK_TOKEN);
    if (check_socket_address(peer->address, peer->port, &to, &length))
        dial(call, &to, length);
    else
        over(call, HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE);
    return call;
}

#define PEERS_MAX 4096 /* of one step */
#define LIMIT_MAX_MS 60000

/* Of one step: each peer's call, and its result when that is over. */
struct check_errand {
    struct check *check;
    struct check_call *call; /* NULL: over */
    uint32_t node;
    struct check_call_result result;
};

struct check {
    struct loop *loop;
    const struct node_facts *facts;
    struct modules *modules;
    struct mpi_host *mpi;
    struct check_door *door;
    struct asked step;
    struct check_errand *errands; /* of the step */
    size_t count, open;
};

/* Facts */

/* The library, and whether it would serve a job. */
static void fill_pmix(struct check *check, Hvdrun__Facts *message)
{
    struct error err = ERROR_INIT;
    char *version = NULL, *file = NULL;
    const char *module = modules_find(check->modules, "hvdrun-pmix.so", &err);
    if (module == NULL || pmix_server_version(module, &version, &file, &err) < 0 ||
        mpi_host_try_pmix(check->mpi, module, check->facts->hostname, &err) < 0)
        message->pmix_problem = mem_strdup(err.text);
    else
        message->pmix_problem = mem_strdup("");
    message->pmix = version == NULL ? mem_strdup("") : version;
    message->pmix_file = file == NULL ? mem_strdup("") : file;
}

static void fill_hwloc(struct check *check, Hvdrun__Facts *message)
{
    struct error err = ERROR_INIT;
    const char *module = modules_find(check->modules, "hvdrun-topology.so", &err);
    char *version = module == NULL ? NULL : health_hwloc(module, &err);
    message->hwloc_problem = mem_strdup(version == NULL ? err.text : "");
    message->hwloc = version == NULL ? mem_strdup("") : version;
}

static void fill_folders(const struct health *health, Hvdrun__CheckFolder *folders,
                         Hvdrun__CheckFolder **pointers)
{
    for (int i = 0; i < HEALTH_FOLDERS; i++) {
        const struct health_folder *from = &health->folders[i];
        folders[i] = (Hvdrun__CheckFolder)HVDRUN__CHECK_FOLDER__INIT;
        folders[i].what = (char *)from->what;
        folders[i].path = from->path;
        folders[i].free_bytes = from->free_bytes;
        folders[i].total_bytes = from->total_bytes;
        folders[i].noexec = from->noexec;
        folders[i].problem = from->problem == NULL ? (char *)"" : from->problem;
        pointers[i] = &folders[i];
    }
}

static void fill_limits(const struct node_facts *facts, Hvdrun__CheckLimit *limits,
                        Hvdrun__CheckLimit **pointers)
{
    for (int i = 0; i < NODE_LIMITS; i++) {
        limits[i] = (Hvdrun__CheckLimit)HVDRUN__CHECK_LIMIT__INIT;
        limits[i].name = (char *)facts->limits[i].name;
        limits[i].resource = (uint32_t)facts->limits[i].resource;
        limits[i].hard = facts->limits[i].hard;
        pointers[i] = &limits[i];
    }
}

void check_facts(struct check *check, const struct asked *asked)
{
    struct health health;
    Hvdrun__CheckFolder folders[HEALTH_FOLDERS], *folder_pointers[HEALTH_FOLDERS];
    Hvdrun__CheckLimit limits[NODE_LIMITS], *limit_pointers[NODE_LIMITS];
    Hvdrun__Facts message = HVDRUN__FACTS__INIT;
    health_read("", check->facts->hostname, &health);
    fill_folders(&health, folders, folder_pointers);
    fill_limits(check->facts, limits, limit_pointers);
    fill_pmix(check, &message);
    fill_hwloc(check, &message);
    message.kernel = (char *)check->facts->kernel;
    message.system = health.system;
    message.folders = folder_pointers;
    message.n_folders = HEALTH_FOLDERS;
    message.limits = limit_pointers;
    message.n_limits = NODE_LIMITS;
    message.gpus = health.gpus.items;
    message.n_gpus = health.gpus.count;
    message.gpu_driver = health.gpu_driver;
    message.adapters = health.adapters.items;
    message.n_adapters = health.adapters.count;
    message.own_address = health.own_address;
    message.mono_ns = (uint64_t)clock_mono_ns();
    message.wall_ns = (uint64_t)clock_wall_ns();
    asked_answer(asked, &message.base);
    char *const owned[] = {message.pmix, message.pmix_file, message.pmix_problem, message.hwloc,
                           message.hwloc_problem};
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        free(owned[i]);
    health_clear(&health);
}

/* Probes */

static void drop_errands(struct check *check)
{
    for (size_t i = 0; i < check->count; i++)
        check_call_cancel(check->errands[i].call);
    free(check->errands);
    check->errands = NULL;
    check->count = check->open = 0;
}

static void answer_probe(struct check *check, const char *problem)
{
    Hvdrun__Probed message = HVDRUN__PROBED__INIT;
    size_t count = check->count;
    Hvdrun__ProbeResult *results AUTO_FREE = mem_array(count, sizeof(*results));
    Hvdrun__ProbeResult **pointers AUTO_FREE = mem_array(count, sizeof(*pointers));
    for (size_t i = 0; i < count; i++) {
        struct check_call_result *from = &check->errands[i].result;
        results[i] = (Hvdrun__ProbeResult)HVDRUN__PROBE_RESULT__INIT;
        results[i].node = check->errands[i].node;
        results[i].outcome = from->outcome;
        results[i].text = from->text;
        results[i].connect_us = (uint64_t)(from->connect_ns / 1000);
        results[i].bytes = from->bytes;
        results[i].transfer_us = (uint64_t)(from->transfer_ns / 1000);
        results[i].source = from->source;
        pointers[i] = &results[i];
    }
    message.port = check->door == NULL ? 0 : check_door_port(check->door);
    message.problem = (char *)problem; /* protobuf-c only reads it */
    message.results = pointers;
    message.n_results = count;
    asked_answer(&check->step, &message.base);
    drop_errands(check);
}

static void errand_done(void *context, const struct check_call_result *result)
{
    struct check_errand *errand = context;
    errand->call = NULL;
    errand->result = *result;
    errand->check->open--;
    if (errand->check->open == 0)
        answer_probe(errand->check, "");
}

static int64_t within_limit(uint32_t milliseconds)
{
    return milliseconds < LIMIT_MAX_MS ? milliseconds : LIMIT_MAX_MS;
}

static void call_peers(struct check *check, const Hvdrun__Probe *message)
{
    check->count = message->n_peers < PEERS_MAX ? message->n_peers : PEERS_MAX;
    check->errands = mem_array(check->count, sizeof(*check->errands));
    check->open = check->count;
    for (size_t i = 0; i < check->count; i++) {
        struct check_errand *errand = &check->errands[i];
        errand->check = check;
        errand->node = message->peers[i]->node;
        errand->call =
            check_call_begin(check->loop, message->peers[i], within_limit(message->limit_ms),
                             within_limit(message->transfer_ms), errand_done, errand);
    }
}

static void open_door(struct check *check, const Hvdrun__Probe *message, struct error *err)
{
    check_door_destroy(check->door);
    check->door = NULL;
    if (message->token.len == CHECK_TOKEN)
        check->door = check_door_create(check->loop, message->listen, message->token.data, err);
    else
        error_set(err, "the driver did not send a token for the check");
}

void check_probe(struct check *check, const struct asked *asked, const Hvdrun__Probe *request)
{
    struct error err = ERROR_INIT;
    drop_errands(check);
    check->step = *asked;
    if (request->listen[0] != '\0')
        open_door(check, request, &err);
    if (request->n_peers > 0)
        call_peers(check, request);
    else
        answer_probe(check, err.text);
}

struct check *check_create(struct loop *loop, const struct node_facts *facts,
                           struct modules *modules, struct mpi_host *mpi)
{
    struct check *check = mem_alloc(sizeof(*check));
    *check = (struct check){.loop = loop, .facts = facts, .modules = modules, .mpi = mpi};
    return check;
}

void check_destroy(struct check *check)
{
    if (check == NULL)
        return;
    drop_errands(check);
    check_door_destroy(check->door);
    free(check);
}

static struct check *own(struct agent *agent)
{
    if (agent_own(agent, check) == NULL)
        agent->own[AGENT_PART_check] =
            check_create(agent->loop, agent->facts, agent->modules, agent->mpi);
    return agent_own(agent, check);
}

static void take_facts(struct agent *agent, const struct asked *asked,
                       const ProtobufCMessage *request)
{
    (void)request;
    check_facts(own(agent), asked);
}

static void take_probe(struct agent *agent, const struct asked *asked,
                       const ProtobufCMessage *request)
{
    check_probe(own(agent), asked, (const Hvdrun__Probe *)request);
}

static void close_part(struct agent *agent)
{
    check_destroy(agent_own(agent, check));
}

static const struct ask_rule topics[] = {
    {&topic_facts, take_facts}, {&topic_probe, take_probe}, {.topic = NULL}};
const struct agent_part check_agent_part = {.name = "check", .topics = topics, .close = close_part};
