/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts take the place of the helper: some answer, others do what a helper must not. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/gpu_sampler.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "helpers_fixture.h"

#define FOLDER "/tmp/hvdrun-gpus-XXXXXX"
/* Two GPUs with the indexes 1 and 2, in the form of the helper. */
#define ANSWER "printf '\\010\\000\\000\\000\\012\\002\\010\\001\\012\\002\\010\\002'"

struct bench {
    char folder[sizeof(FOLDER)];
    char *program, *log;
    struct helper_loop children;
    struct gpu_sampler *sampler;
    int answers, gpus; /* -1: no answer */
};

static int open_bench(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    *bench = (struct bench){.folder = FOLDER};
    signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(bench->folder));
    bench->program = mem_printf("%s/helper", bench->folder);
    bench->log = mem_printf("%s/starts", bench->folder);
    helper_loop_open(&bench->children);
    *state = bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    gpu_sampler_destroy(bench->sampler);
    helper_loop_close(&bench->children);
    unlink(bench->program);
    unlink(bench->log);
    rmdir(bench->folder);
    free(bench->program);
    free(bench->log);
    free(bench);
    return 0;
}

/* A helper that does this after it has noted its start. */
static void use(struct bench *bench, const char *script, struct gpu_limits limits)
{
    char *text AUTO_FREE = mem_printf("#!/bin/sh\necho >>%s\n%s\n", bench->log, script);
    int fd AUTO_FD = fd_open(bench->program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    bench->sampler =
        gpu_sampler_create(bench->children.loop, bench->children.helpers, bench->program, limits);
}

static int starts(const struct bench *bench)
{
    struct stat status;
    return stat(bench->log, &status) == 0 ? (int)status.st_size : 0;
}

static void on_answer(void *context, const Hvdrun__GpuUsages *gpus)
{
    struct bench *bench = context;
    bench->answers++;
    bench->gpus = gpus == NULL ? -1 : (int)gpus->n_gpus;
    loop_stop(bench->children.loop);
}

static int ask(struct bench *bench)
{
    bench->answers = 0;
    gpu_sampler_ask(bench->sampler, on_answer, bench);
    if (bench->answers == 0)
        run_loop(bench->children.loop);
    assert_int_equal(bench->answers, 1);
    return bench->gpus;
}

static struct gpu_limits patient(void)
{
    return (struct gpu_limits){
        .wait = RUN_LIMIT_MS, .sick = RUN_LIMIT_MS, .pause = 600000, .idle = 600000, .fresh = 5000};
}

static void test_answers(void **state)
{
    struct bench *bench = *state;
    use(bench, "while test -n \"$(head -c 1)\"; do " ANSWER "; done", patient());
    assert_int_equal(ask(bench), 2);
    assert_int_equal(ask(bench), 2);
    assert_int_equal(starts(bench), 1);
    /* one who asks twice is answered once */
    bench->answers = 0;
    gpu_sampler_ask(bench->sampler, on_answer, bench);
    gpu_sampler_ask(bench->sampler, on_answer, bench);
    run_loop(bench->children.loop);
    assert_int_equal(bench->answers, 1);
}

static void test_no_driver(void **state)
{
    struct bench *bench = *state;
    struct gpu_limits limits = patient();
    limits.pause = 0;
    use(bench, "exit 3", limits);
    assert_int_equal(ask(bench), -1);
    assert_int_equal(ask(bench), -1);
    assert_int_equal(starts(bench), 1);
}

/* Each of these gets a successor only after the pause. */
static void test_bad_helpers(void **state)
{
    static const char *const scripts[] = {
        "exit 1",                                        /* a crash */
        "printf '\\377\\377\\377\\377'; exec sleep 600", /* an answer of 4 GiB */
        "printf '\\004\\000\\000\\000\\377\\377\\377\\377'; exec sleep 600", /* not a message */
        "printf '\\010\\000\\000'; exit 0",                                  /* torn */
        "exec </dev/null; printf x; exit 7",
    };
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        use(bench, scripts[i], patient());
        assert_int_equal(ask(bench), -1);
        if (i != 3) /* it ended as one does that nobody needs */
            assert_int_equal(ask(bench), -1);
        assert_int_equal(starts(bench), 1);
        gpu_sampler_destroy(bench->sampler);
        bench->sampler = NULL;
        unlink(bench->log);
    }
}

static void run_until_gone(struct bench *bench)
{
    run_until(bench->children.loop, !reaper_has_children());
}

/* The loop does not turn meanwhile, so no limit ends the helper before it has noted its start. */
static void wait_for_start(const struct bench *bench, int count)
{
    for (int i = 0; i < 2000 && starts(bench) < count; i++)
        usleep(10000);
    assert_int_equal(starts(bench), count);
}

/* Those who ask get no answer in time; in the end the helper is killed, and another one starts. */
static void test_a_helper_that_hangs(void **state)
{
    struct bench *bench = *state;
    struct gpu_limits limits = patient();
    limits.wait = 10;
    limits.sick = 1000;
    limits.pause = 0;
    use(bench, "trap '' TERM; while :; do sleep 600; done", limits);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(ask(bench), -1);
        wait_for_start(bench, i);
        run_until_gone(bench);
    }
    assert_int_equal(starts(bench), 2);
}

/* A late answer is for the next question. An old one is none. */
static void test_late(void **state)
{
    struct bench *bench = *state;
    struct gpu_limits limits = patient();
    limits.wait = 10;
    use(bench, "head -c 1 >/dev/null; sleep 0.2; " ANSWER "; sleep 600", limits);
    assert_int_equal(ask(bench), -1);
    for (int i = 0; i < 2000 && ask(bench) < 0; i++)
        usleep(10000);
    assert_int_equal(bench->gpus, 2);
    gpu_sampler_destroy(bench->sampler);
    unlink(bench->log);
    limits.fresh = 0;
    use(bench, "head -c 1 >/dev/null; " ANSWER "; sleep 600", limits);
    assert_int_equal(ask(bench), -1);
}

static void test_idle(void **state)
{
    struct bench *bench = *state;
    struct gpu_limits limits = patient();
    limits.idle = 10;
    limits.pause = 0;
    use(bench, "while test -n \"$(head -c 1)\"; do " ANSWER "; done", limits);
    assert_int_equal(ask(bench), 2);
    run_until_gone(bench);
    assert_int_equal(ask(bench), 2);
    assert_int_equal(starts(bench), 2);
}

/* The agent ends all its processes when workers end. There is no pause after that. The test is the
 * agent: if the helper ended itself, its end and its answer could arrive in one turn. */
static void test_a_helper_that_the_agent_ends(void **state)
{
    struct bench *bench = *state;
    char *path AUTO_FREE = mem_printf("%s.pid", bench->program);
    struct buf pid AUTO_BUF = BUF_INIT(64);
    int64_t number = 0;
    use(bench, "printf $$ >$0.pid; head -c 1 >/dev/null; " ANSWER "; exec sleep 600", patient());
    assert_int_equal(ask(bench), 2);
    assert_int_equal(fd_read_file(path, &pid, NULL), 0);
    unlink(path);
    assert_int_equal(parse_int(buf_text(&pid), 2, INT_MAX, &number, NULL), 0);
    assert_int_equal(kill((pid_t)number, SIGTERM), 0);
    run_until_gone(bench);
    assert_int_equal(ask(bench), 2);
    assert_int_equal(starts(bench), 2);
    unlink(path);
}

static void test_no_program(void **state)
{
    struct bench *bench = *state;
    bench->sampler = gpu_sampler_create(bench->children.loop, bench->children.helpers,
                                        "/nowhere/hvdrun-agent", patient());
    assert_int_equal(ask(bench), -1);
    assert_int_equal(ask(bench), -1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        CASE(test_answers),     CASE(test_no_driver),
        CASE(test_bad_helpers), CASE(test_a_helper_that_hangs),
        CASE(test_late),        CASE(test_idle),
        CASE(test_no_program),  CASE(test_a_helper_that_the_agent_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
