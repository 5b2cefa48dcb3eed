/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/gpu_desk_agent.h"

#include <stdlib.h>
#include <string.h>

#include "agent/gpu_health.h"
#include "base/mem.h"
#include "features/check/gpu_test.h"
#include "io/child.h"
#include "io/program.h"

/* gpu_test.py, with a NUL behind it. */
__asm__(".pushsection .rodata\n.globl gpu_test_py\n.hidden gpu_test_py\n"
        ".type gpu_test_py, @object\ngpu_test_py:\n.incbin \"" HVDRUN_GPU_TEST
        "\"\n.byte 0\n.popsection\n");
extern const char gpu_test_py[];

#define BETWEEN_WORDS 5

struct gpu_desk {
    struct loop *loop;
    struct helpers *helpers;
    const char *helper_program;
    struct asked asked;
    struct gpu_health_question *question; /* NULL: none is under way */
    struct program *test;                 /* likewise */
    char *python;
    uint8_t *health;
    size_t health_length;
    char *missing;
    char *between[BETWEEN_WORDS]; /* more arguments of the test; NULL: none */
};

static void forget(struct gpu_desk *desk)
{
    gpu_health_cancel(desk->question);
    program_cancel(desk->test);
    free(desk->python);
    free(desk->health);
    free(desk->missing);
    desk->question = NULL;
    desk->test = NULL;
    desk->python = desk->missing = NULL;
    desk->health = NULL;
    desk->health_length = 0;
    for (int i = 0; i < BETWEEN_WORDS; i++)
        mem_free_at(&desk->between[i]);
}

static void answer(struct gpu_desk *desk, const struct program_result *test)
{
    Hvdrun__GpusAnswer message = HVDRUN__GPUS_ANSWER__INIT;
    message.health = (ProtobufCBinaryData){desk->health_length, desk->health};
    message.missing = desk->missing;
    char *problem AUTO_FREE = NULL;
    if (test != NULL && test->why != NULL)
        problem = mem_strdup(test->why);
    if (test != NULL)
        message.test = (ProtobufCBinaryData){test->length, (uint8_t *)test->text};
    if (problem != NULL)
        message.test_problem = problem;
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
    const struct program_spec spec = {.loop = desk->loop,
                                      .helpers = desk->helpers,
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
static void take_health(void *context, const char *bytes, size_t length, const char *missing)
{
    struct gpu_desk *desk = context;
    Hvdrun__GpuHealths *gpus = hvdrun__gpu_healths__unpack(NULL, length, (const uint8_t *)bytes);
    bool any = gpus != NULL && gpus->n_gpus > 0;
    if (gpus != NULL)
        hvdrun__gpu_healths__free_unpacked(gpus, NULL);
    gpu_health_cancel(desk->question);
    desk->question = NULL;
    desk->health = mem_alloc(length + 1);
    if (length > 0)
        memcpy(desk->health, bytes, length);
    desk->health_length = length;
    desk->missing = mem_strdup(missing);
    if (desk->python[0] != '\0' && any && missing[0] == '\0')
        begin_test(desk);
    else
        answer(desk, NULL);
}

struct gpu_desk *gpu_desk_create(struct agent *agent)
{
    struct gpu_desk *desk = mem_alloc(sizeof(*desk));
    *desk = (struct gpu_desk){
        .loop = agent->loop, .helpers = agent->helpers, .helper_program = agent->helper_program};
    return desk;
}

void gpu_desk_destroy(struct gpu_desk *desk)
{
    if (desk == NULL)
        return;
    forget(desk);
    free(desk);
}

void gpu_desk_ask(struct gpu_desk *desk, const struct asked *asked,
                  const Hvdrun__GpusRequest *request)
{
    forget(desk);
    desk->asked = *asked;
    desk->python = mem_strdup(request->python);
    if (request->between_address[0] != '\0') {
        desk->between[0] = mem_strdup("between");
        desk->between[1] = mem_printf("%u", request->between_rank);
        desk->between[2] = mem_strdup(request->between_address);
        desk->between[3] = mem_printf("%u", request->between_port);
        desk->between[4] = mem_strdup(request->between_interface);
        desk->missing = mem_strdup("");
        begin_test(desk);
        return;
    }
    desk->question = gpu_health_ask(desk->loop, desk->helpers, desk->helper_program, GPU_HEALTH_ALL,
                                    GPU_FACTS_MS, take_health, desk);
}
