/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts take the place of the helper process: one that answers, and some that do not. */
#include "node/fake_root.h"

#include "agent/gpu_health.h"
#include "agent/gpu_sampler.h"
#include "helpers_fixture.h"
#include "wire/control.pb-c.h"

/* Lists of one GPU each, in the form of the helper: those with the indexes 1 and 2. */
#define ONE "printf '\\012\\002\\010\\001'\n"
#define TWO "printf '\\012\\002\\010\\002'\n"

struct asking {
    char root[sizeof(FAKE_ROOT)];
    struct helper_loop children;
    int answers, gpus;
    const char *missing;
};

static int open_asking(void **state)
{
    struct asking *asking = mem_alloc(sizeof(*asking));
    *asking = (struct asking){.root = FAKE_ROOT};
    assert_non_null(mkdtemp(asking->root));
    helper_loop_open(&asking->children);
    *state = asking;
    return 0;
}

static int close_asking(void **state)
{
    struct asking *asking = *state;
    helper_loop_close(&asking->children);
    fake_remove(asking->root);
    free(asking);
    return 0;
}

static void on_answer(void *context, const struct program_result *result)
{
    struct asking *asking = context;
    Hvdrun__GpuHealths *gpus =
        hvdrun__gpu_healths__unpack(NULL, result->length, (const uint8_t *)result->text);
    asking->answers++;
    asking->missing = gpu_health_missing(result);
    asking->gpus = gpus == NULL ? -1 : (int)gpus->n_gpus;
    if (gpus != NULL)
        hvdrun__gpu_healths__free_unpacked(gpus, NULL);
    loop_stop(asking->children.loop);
}

/* How many GPUs the answer has. */
static int answer_of(struct asking *asking, const char *script, int64_t limit_ms)
{
    char *text AUTO_FREE =
        mem_printf("#!/bin/sh\ntest \"$*\" = \"--gpu-health now\" || exit 9\n%s", script);
    char *program AUTO_FREE = fake_path(asking->root, "helper");
    put_file(asking->root, "helper", text);
    assert_int_equal(chmod(program, 0700), 0);
    asking->answers = 0;
    (void)gpu_health_ask(asking->children.loop, asking->children.helpers, program, GPU_HEALTH_NOW,
                         limit_ms, on_answer, asking);
    run_loop(asking->children.loop);
    run_turns(asking->children.loop, 3);
    assert_int_equal(asking->answers, 1);
    return asking->gpus;
}

static void test_answers(void **state)
{
    struct asking *asking = *state;
    assert_int_equal(answer_of(asking, ONE TWO, RUN_LIMIT_MS), 2);
    assert_string_equal(asking->missing, "");
    assert_int_equal(answer_of(asking, "", RUN_LIMIT_MS), 0);
    assert_string_equal(asking->missing, "");
}

/* There is nothing to say about it. */
static void test_no_driver(void **state)
{
    struct asking *asking = *state;
    char *script AUTO_FREE = mem_printf("exit %d\n", GPU_HELPER_NONE);
    assert_int_equal(answer_of(asking, script, RUN_LIMIT_MS), 0);
    assert_string_equal(asking->missing, "");
}

/* What came before is kept. */
static void test_failures(void **state)
{
    struct asking *asking = *state;
    assert_int_equal(answer_of(asking, ONE "exit 1\n", RUN_LIMIT_MS), 1);
    assert_string_equal(asking->missing, "NVIDIA's library has failed");
    assert_int_equal(answer_of(asking, ONE TWO "kill -SEGV $$\n", RUN_LIMIT_MS), 2);
    assert_string_equal(asking->missing, "NVIDIA's library has failed");
    assert_int_equal(answer_of(asking, ONE "kill -KILL $$\n", RUN_LIMIT_MS), 1); /* the agent did */
    assert_string_equal(asking->missing, "NVIDIA's library did not answer in time");
    answer_of(asking, "exec sleep 600\n", 1);
    assert_string_equal(asking->missing, "NVIDIA's library did not answer in time");
    answer_of(asking, "exec yes\n", RUN_LIMIT_MS);
    assert_string_not_equal(asking->missing, "");
}

static void test_cancel(void **state)
{
    struct asking *asking = *state;
    put_file(asking->root, "helper", "#!/bin/sh\nexec sleep 600\n");
    char *program AUTO_FREE = fake_path(asking->root, "helper");
    assert_int_equal(chmod(program, 0700), 0);
    program_cancel(gpu_health_ask(asking->children.loop, asking->children.helpers, program,
                                  GPU_HEALTH_NOW, RUN_LIMIT_MS, on_answer, asking));
    run_turns(asking->children.loop, 3);
    assert_int_equal(asking->answers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, open_asking, close_asking),
        cmocka_unit_test_setup_teardown(test_no_driver, open_asking, close_asking),
        cmocka_unit_test_setup_teardown(test_failures, open_asking, close_asking),
        cmocka_unit_test_setup_teardown(test_cancel, open_asking, close_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
