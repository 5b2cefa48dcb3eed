/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's part of `hvdrun check`, the topics "facts", "probe" and "gpus": what its node is
 * like, whether and how fast it reaches the other nodes, and whether its GPUs are well.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/gpu_health.h"
#include "agent/modules.h"
#include "agent/mpi_host.h"
#include "agent/part.h"
#include "base/clock.h"
#include "base/mem.h"
#include "features/check/check.h"
#include "features/check/door.h"
#include "io/child.h"
#include "io/program.h"
#include "node/facts.h"
#include "node/health.h"
#include "pmix/pmix_server.h"

/* ---- GPUs: what NVIDIA's library says of them (agent/gpu_health.h), and then how fast they are,
 * if a Python with PyTorch is there (gpu_test.py). Both are processes with a time limit. */

/* gpu_test.py, with a NUL behind it. */
__asm__(".pushsection .rodata\n.globl gpu_test_py\n.hidden gpu_test_py\n"
        ".type gpu_test_py, @object\ngpu_test_py:\n.incbin \"" HVDRUN_GPU_TEST
        "\"\n.byte 0\n.popsection\n");
extern const char gpu_test_py[];

#define BETWEEN_WORDS 5

struct gpu_desk {
    struct agent *agent;
    struct asked asked;
    struct program *question; /* NULL: none is under way */
    struct program *test;     /* likewise */
    char *python;
    uint8_t *health;
    size_t health_length;
    char *missing;
    char *between[BETWEEN_WORDS]; /* more arguments of the test; NULL: none */
};

static void forget(struct gpu_desk *desk)
{
    program_cancel(desk->question);
    program_cancel(desk->test);
    free(desk->python);
    free(desk->health);
    free(desk->missing);
    for (int i = 0; i < BETWEEN_WORDS; i++)
        free(desk->between[i]);
    *desk = (struct gpu_desk){.agent = desk->agent};
}

static void answer(struct gpu_desk *desk, const struct program_result *test)
{
    Hvdrun__GpusAnswer message = HVDRUN__GPUS_ANSWER__INIT;
    message.health = (ProtobufCBinaryData){desk->health_length, desk->health};
    message.missing = desk->missing;
    if (test != NULL) /* protobuf-c only reads it */
        message.test = (ProtobufCBinaryData){test->length, (uint8_t *)test->text};
    if (test != NULL && test->why != NULL)
        message.test_problem = (char *)test->why;
    asked_answer(&desk->asked, &message.base);
    forget(desk);
}

static void tested(void *context, const struct program_result *result)
{
    struct gpu_desk *desk = context;
    desk->test = NULL;
    answer(desk, result);
}

/* Without that program, the result is that of a test that finds no PyTorch. */
static void begin_test(struct gpu_desk *desk)
{
    char *path AUTO_FREE = child_find(desk->python, getenv("PATH"), NULL, NULL);
    char *text AUTO_FREE = mem_printf("none there is no %s", desk->python);
    const struct program_result none = {.text = text, .length = strlen(text), .last_line = ""};
    if (path == NULL) {
        answer(desk, &none);
        return;
    }
    char *const argv[] = {desk->python,     (char *)"-B",     (char *)"-",
                          desk->between[0], desk->between[1], desk->between[2],
                          desk->between[3], desk->between[4], NULL};
    const struct program_spec spec = {.loop = desk->agent->loop,
                                      .helpers = desk->agent->helpers,
                                      .path = path,
                                      .argv = argv,
                                      .name = "the test",
                                      .input = gpu_test_py,
                                      .input_length = strlen(gpu_test_py),
                                      .output_max = GPU_TEST_TEXT_MAX,
                                      .drops_excess = true,
                                      .time_max_ms =
                                          desk->between[0] == NULL ? GPU_TEST_MS : GPU_BETWEEN_MS};
    desk->test = program_start(&spec, tested, desk);
}

/* No test if no GPU of NVIDIA is known, or if the library hangs: CUDA would hang, too. */
static void take_health(void *context, const struct program_result *result)
{
    struct gpu_desk *desk = context;
    Hvdrun__GpuHealths *gpus =
        hvdrun__gpu_healths__unpack(NULL, result->length, (const uint8_t *)result->text);
    bool any = gpus != NULL && gpus->n_gpus > 0;
    if (gpus != NULL)
        hvdrun__gpu_healths__free_unpacked(gpus, NULL);
    desk->question = NULL;
    desk->health = mem_dup(result->text, result->length);
    desk->health_length = result->length;
    desk->missing = mem_strdup(gpu_health_missing(result));
    if (desk->python[0] != '\0' && any && desk->missing[0] == '\0')
        begin_test(desk);
    else
        answer(desk, NULL);
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
    struct check_door *door;
    struct gpu_desk gpus;
    struct asked step;
    struct check_errand *errands; /* of the step */
    size_t count, open;
};

static struct check *own(struct agent *agent)
{
    struct check *check = agent_own(agent, check);
    if (check != NULL)
        return check;
    check = MEM_NEW((struct check){.loop = agent->loop, .gpus = {.agent = agent}});
    agent->own[AGENT_PART_check] = check;
    return check;
}

/* Answers later. Another question takes the place of this one. */
static void take_gpus(struct agent *agent, const struct asked *asked,
                      const ProtobufCMessage *message)
{
    const Hvdrun__GpusRequest *request = (const Hvdrun__GpusRequest *)message;
    struct gpu_desk *desk = &own(agent)->gpus;
    forget(desk);
    desk->asked = *asked;
    desk->python = mem_strdup(request->python);
    if (request->between_address[0] == '\0') {
        desk->question = gpu_health_ask(agent->loop, agent->helpers, agent->helper_program,
                                        GPU_HEALTH_ALL, GPU_FACTS_MS, take_health, desk);
        return;
    }
    desk->between[0] = mem_strdup("between");
    desk->between[1] = mem_printf("%u", request->between_rank);
    desk->between[2] = mem_strdup(request->between_address);
    desk->between[3] = mem_printf("%u", request->between_port);
    desk->between[4] = mem_strdup(request->between_interface);
    desk->missing = mem_strdup("");
    begin_test(desk);
}

/* ---- Facts ----------------------------------------------------------------------------------- */

/* The library, and whether it would serve a job. */
static void fill_pmix(const struct agent *agent, Hvdrun__Facts *message)
{
    struct error err = ERROR_INIT;
    char *version = NULL, *file = NULL;
    const char *module = modules_find(agent->modules, "hvdrun-pmix.so", &err);
    if (module == NULL || pmix_server_version(module, &version, &file, &err) < 0 ||
        mpi_host_try_pmix(agent->mpi, module, agent->facts->hostname, &err) < 0)
        message->pmix_problem = mem_strdup(err.text);
    else
        message->pmix_problem = mem_strdup("");
    message->pmix = version == NULL ? mem_strdup("") : version;
    message->pmix_file = file == NULL ? mem_strdup("") : file;
}

static void fill_hwloc(const struct agent *agent, Hvdrun__Facts *message)
{
    struct error err = ERROR_INIT;
    const char *module = modules_find(agent->modules, "hvdrun-topology.so", &err);
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

/* At once, but asking file systems can take long. */
static void take_facts(struct agent *agent, const struct asked *asked,
                       const ProtobufCMessage *request)
{
    struct health health;
    Hvdrun__CheckFolder folders[HEALTH_FOLDERS], *folder_pointers[HEALTH_FOLDERS];
    Hvdrun__CheckLimit limits[NODE_LIMITS], *limit_pointers[NODE_LIMITS];
    Hvdrun__Facts message = HVDRUN__FACTS__INIT;
    (void)request;
    health_read("", agent->facts->hostname, &health);
    fill_folders(&health, folders, folder_pointers);
    fill_limits(agent->facts, limits, limit_pointers);
    fill_pmix(agent, &message);
    fill_hwloc(agent, &message);
    message.kernel = (char *)agent->facts->kernel;
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

/* ---- Probes ---------------------------------------------------------------------------------- */

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

/* Later. Another step takes the place of this one. */
static void take_probe(struct agent *agent, const struct asked *asked,
                       const ProtobufCMessage *message)
{
    const Hvdrun__Probe *request = (const Hvdrun__Probe *)message;
    struct check *check = own(agent);
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

static void close_part(struct agent *agent)
{
    struct check *check = agent_own(agent, check);
    drop_errands(check);
    check_door_destroy(check->door);
    forget(&check->gpus);
    free(check);
}

static const struct ask_rule topics[] = {{&topic_facts, take_facts},
                                         {&topic_probe, take_probe},
                                         {&topic_gpus, take_gpus},
                                         {.topic = NULL}};
const struct agent_part check_agent_part = {.name = "check", .topics = topics, .close = close_part};
