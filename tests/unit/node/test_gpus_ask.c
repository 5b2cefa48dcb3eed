/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-smi is a script here: one that answers, one that fails, one that hangs. */
#include "fake_root.h"
#include "helpers_fixture.h"
#include "node/gpus.h"

struct asking {
    char root[sizeof(FAKE_ROOT)];
    struct helper_loop children;
    struct program *ask;
    int answers, gpus;
};

static void on_answer(void *context, const struct program_result *result)
{
    struct asking *asking = context;
    asking->ask = NULL;
    asking->answers++;
    asking->gpus = gpus_answered(result);
    loop_stop(asking->children.loop);
}

static int open_asking(void **state)
{
    struct asking *asking = mem_alloc(sizeof(*asking));
    memcpy(asking->root, FAKE_ROOT, sizeof(FAKE_ROOT));
    assert_non_null(mkdtemp(asking->root));
    helper_loop_open(&asking->children);
    *state = asking;
    return 0;
}

static int close_asking(void **state)
{
    struct asking *asking = *state;
    program_cancel(asking->ask);
    helper_loop_close(&asking->children);
    fake_remove(asking->root);
    free(asking);
    return 0;
}

/* The path of a program that does this; the caller owns it. */
static char *put_program(const struct asking *asking, const char *script)
{
    char *path = mem_printf("%s/bin/nvidia-smi", asking->root);
    put_file(asking->root, "bin/nvidia-smi", script);
    assert_int_equal(chmod(path, 0700), 0);
    return path;
}

static int answer_of_program(struct asking *asking, const char *program, int64_t limit_ms)
{
    asking->answers = 0;
    asking->gpus = -1;
    asking->ask = gpus_ask(asking->children.loop, asking->children.helpers, program, limit_ms,
                           on_answer, asking);
    run_loop(asking->children.loop);
    run_turns(asking->children.loop, 3);
    assert_int_equal(asking->answers, 1);
    return asking->gpus;
}

static int answer_of(struct asking *asking, const char *script, int64_t limit_ms)
{
    char *program AUTO_FREE = put_program(asking, script);
    return answer_of_program(asking, program, limit_ms);
}

static void test_answers(void **state)
{
    struct asking *asking = *state;
    assert_int_equal(answer_of(asking,
                               "#!/bin/sh\ntest \"$*\" = -L || exit 3\n"
                               "echo 'GPU 0: NVIDIA H100 (UUID: GPU-1)'\n"
                               "echo '  MIG 1g.10gb Device 0: (UUID: MIG-1)'\n"
                               "echo 'GPU 1: NVIDIA H100 (UUID: GPU-2)'\n",
                               RUN_LIMIT_MS),
                     2);
    assert_int_equal(answer_of(asking, "#!/bin/sh\necho 'GPU 0: x'; exit 9\n", RUN_LIMIT_MS), 0);
    assert_int_equal(answer_of(asking, "#!/bin/sh\necho 'GPU GPU GPU 7'\n", RUN_LIMIT_MS), 1);
    assert_int_equal(answer_of(asking, "#!/bin/sh\necho 'No devices found.'\n", RUN_LIMIT_MS), 0);
    assert_int_equal(answer_of(asking, "#!/bin/sh\nkill -9 $$\n", RUN_LIMIT_MS), 0);
}

/* The loop goes on meanwhile, and the answer comes at the limit. */
static void test_hanging(void **state)
{
    struct asking *asking = *state;
    assert_int_equal(answer_of(asking, "#!/bin/sh\necho 'GPU 0: x'; exec sleep 600\n", 50), 0);
    /* destroyed while it runs: the program goes too */
    char *program AUTO_FREE = put_program(asking, "#!/bin/sh\nexec sleep 600\n");
    asking->ask = gpus_ask(asking->children.loop, asking->children.helpers, program, RUN_LIMIT_MS,
                           on_answer, asking);
    assert_non_null(asking->ask);
    mem_free_at(&program);
    program_cancel(asking->ask);
    asking->ask = NULL;
    int64_t end = loop_now_ms(asking->children.loop) + RUN_LIMIT_MS;
    while (reaper_has_children() && loop_now_ms(asking->children.loop) < end)
        run_turns(asking->children.loop, 3);
    assert_false(reaper_has_children());
}

static void test_not_a_program(void **state)
{
    struct asking *asking = *state;
    assert_int_equal(answer_of_program(asking, "/nowhere/nvidia-smi", RUN_LIMIT_MS), 0);
}

/* Only where there is a driver, and a program. */
static void test_when_to_ask(void **state)
{
    struct asking *asking = *state;
    char *program AUTO_FREE = put_program(asking, "#!/bin/sh\n");
    char *search AUTO_FREE = mem_printf("/nowhere:%s/bin", asking->root);
    assert_null(gpus_ask_program(asking->root, search));
    put_file(asking->root, "dev/dxg", "");
    char *found AUTO_FREE = gpus_ask_program(asking->root, search);
    assert_string_equal(found, program);
    if (access("/usr/lib/wsl/lib/nvidia-smi", X_OK) < 0) {
        assert_null(gpus_ask_program(asking->root, "/nowhere"));
        assert_null(gpus_ask_program(asking->root, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, open_asking, close_asking),
        cmocka_unit_test_setup_teardown(test_hanging, open_asking, close_asking),
        cmocka_unit_test_setup_teardown(test_not_a_program, open_asking, close_asking),
        cmocka_unit_test_setup_teardown(test_when_to_ask, open_asking, close_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
