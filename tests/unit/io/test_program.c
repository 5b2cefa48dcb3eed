/* SPDX-License-Identifier: Apache-2.0 */
/* Real programs: little shell scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "helpers_fixture.h"
#include "io/program.h"

struct fixture {
    struct helper_loop children;
    struct program *program;
    struct log log;
    struct buf logged; /* lines */
    int results, status, signal;
    char why[512], last_line[512]; /* "": none */
    struct buf text;
};

static void on_log(void *context, enum log_level level, const char *line)
{
    struct fixture *f = context;
    assert_int_equal(level, LOG_INFO);
    buf_printf(&f->logged, "%s\n", line);
}

static void on_done(void *context, const struct program_result *result)
{
    struct fixture *f = context;
    f->program = NULL;
    f->results++;
    f->status = result->status;
    f->signal = result->signal;
    snprintf(f->why, sizeof(f->why), "%s", result->why == NULL ? "" : result->why);
    snprintf(f->last_line, sizeof(f->last_line), "%s", result->last_line);
    buf_clear(&f->text);
    assert_int_equal(buf_append(&f->text, result->text, result->length), 0);
    loop_stop(f->children.loop);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    helper_loop_open(&f->children);
    f->log = (struct log){.level = LOG_DEBUG, .emit = on_log, .context = f};
    buf_init(&f->logged, 1 << 20);
    buf_init(&f->text, 1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    program_cancel(f->program);
    helper_loop_expect_idle(&f->children);
    helper_loop_close(&f->children);
    buf_destroy(&f->logged);
    buf_destroy(&f->text);
    free(f);
    return 0;
}

static struct program_spec spec_of(const struct fixture *f, char *const *argv)
{
    return (struct program_spec){.loop = f->children.loop,
                                 .helpers = f->children.helpers,
                                 .log = &f->log,
                                 .argv = argv,
                                 .name = "script",
                                 .output_max = 1000,
                                 .time_max_ms = RUN_LIMIT_MS};
}

static void begin(struct fixture *f, const char *script)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    const struct program_spec spec = spec_of(f, argv);
    f->program = program_start(&spec, on_done, f);
}

static void run(struct fixture *f, const char *script)
{
    int before = f->results;
    begin(f, script);
    assert_int_equal(f->results, before); /* from the loop */
    run_loop(f->children.loop);
    run_turns(f->children.loop, 3);
    assert_int_equal(f->results, before + 1);
}

static void test_good_end(void **state)
{
    struct fixture *f = *state;
    run(f, "echo one; echo two; echo aside >&2");
    assert_string_equal(f->why, "");
    assert_int_equal(f->status, 0);
    assert_int_equal(f->signal, 0);
    assert_string_equal(buf_text(&f->text), "one\ntwo\n");
    assert_string_equal(f->last_line, "aside");
    assert_string_equal(buf_text(&f->logged), "script: aside\n");
}

static void test_other_ends(void **state)
{
    struct fixture *f = *state;
    run(f, "echo x; exit 3");
    assert_string_equal(f->why, "script ended with exit status 3");
    assert_int_equal(f->status, 3);
    assert_string_equal(buf_text(&f->text), "x\n");
    run(f, "echo first >&2; printf 'no such cluster' >&2; exit 4");
    assert_string_equal(f->why, "script ended with exit status 4: no such cluster");
    run(f, "kill -15 $$");
    assert_string_equal(f->why, "script was killed by signal 15 (Terminated)");
    assert_int_equal(f->signal, SIGTERM);
    assert_int_equal(f->status, -1);
}

static void test_cannot_start(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {(char *)"hvdrun-no-such-program", NULL};
    struct program_spec spec = spec_of(f, argv);
    f->program = program_start(&spec, on_done, f);
    run_loop(f->children.loop);
    assert_non_null(strstr(f->why, "in PATH"));
    assert_int_equal(f->status, -1);
    spec.path = "/nowhere/program";
    f->program = program_start(&spec, on_done, f);
    run_loop(f->children.loop);
    assert_non_null(strstr(f->why, "cannot execute /nowhere/program"));
    assert_int_equal(f->results, 2);
}

static void test_too_much_output(void **state)
{
    struct fixture *f = *state;
    run(f, "yes >&2 & yes; wait");
    assert_string_equal(f->why, "script printed more than 1000 bytes");
    assert_int_equal(f->status, -1);
    assert_int_equal(f->signal, 0); /* nobody else's */
    helper_loop_expect_idle(&f->children);
    run(f, "printf '%01000d' 7");
    assert_string_equal(f->why, "");
    assert_int_equal(f->text.length, 1000);
}

static void test_excess_is_dropped(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"yes | head -c 1000000; exit 5",
                          NULL};
    struct program_spec spec = spec_of(f, argv);
    spec.drops_excess = true;
    f->program = program_start(&spec, on_done, f);
    run_loop(f->children.loop);
    assert_int_equal(f->status, 5);
    assert_int_equal(f->text.length, 1000);
}

/* It ignores TERM and has a child; both are killed. */
static void test_time_limit(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {(char *)"sh", (char *)"-c",
                          (char *)"trap '' TERM; echo asking >&2; sleep 1000 & sleep 1000", NULL};
    struct program_spec spec = spec_of(f, argv);
    spec.time_max_ms = 300;
    f->program = program_start(&spec, on_done, f);
    run_loop(f->children.loop);
    assert_string_equal(f->why, "script did not end within 0.3 s and was killed; it said: asking");
    assert_int_equal(f->status, -1);
    assert_int_equal(f->signal, 0);
    helper_loop_expect_idle(&f->children);
}

/* A child in the group is killed. One that left the group is not waited for. */
static void test_child_holds_the_pipe(void **state)
{
    struct fixture *f = *state;
    run(f, "echo a; sleep 1000 &");
    assert_string_equal(f->why, "");
    assert_string_equal(buf_text(&f->text), "a\n");
    helper_loop_expect_idle(&f->children);
    run(f, "setsid sleep 1000 & echo $!");
    assert_string_equal(f->why, "");
    pid_t daemon = (pid_t)strtol(buf_text(&f->text), NULL, 10);
    assert_true(daemon > 0);
    assert_true(kill(daemon, SIGKILL) == 0 || errno == ESRCH); /* the group may have gone first */
}

/* An empty stdin, a session of its own, no signal blocked, nothing of our loop, our environment. */
static void test_surroundings(void **state)
{
    struct fixture *f = *state;
    setenv("PROGRAM_TEST", "seen", 1);
    run(f, "read x && exit 7; set -- $(cat /proc/$$/stat); [ \"$6\" = $$ ] || exit 8;"
           "grep -q '^SigBlk:.0*$' /proc/self/status || exit 9;"
           "ls -l /proc/$$/fd | grep -q anon_inode && exit 10;"
           "echo $PROGRAM_TEST");
    assert_string_equal(f->why, "");
    assert_string_equal(buf_text(&f->text), "seen\n");
    char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo $PROGRAM_TEST", NULL};
    char *const envp[] = {(char *)"PROGRAM_TEST=other", NULL};
    struct program_spec spec = spec_of(f, argv);
    spec.envp = envp;
    f->program = program_start(&spec, on_done, f);
    run_loop(f->children.loop);
    assert_string_equal(buf_text(&f->text), "other\n");
}

/* More than a pipe holds, and a program that does not read it. */
static void test_input(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"wc -c; read x || echo end", NULL};
    char *const deaf[] = {(char *)"true", NULL};
    struct program_spec spec = spec_of(f, argv);
    spec.input_length = 1 << 20;
    spec.input = mem_alloc(spec.input_length);
    f->program = program_start(&spec, on_done, f);
    run_loop(f->children.loop);
    assert_string_equal(buf_text(&f->text), "1048576\nend\n");
    spec.argv = deaf;
    f->program = program_start(&spec, on_done, f);
    free((char *)spec.input);
    run_loop(f->children.loop);
    assert_string_equal(f->why, "");
}

static void test_cancel(void **state)
{
    struct fixture *f = *state;
    begin(f, "trap '' TERM; sleep 1000 & sleep 1000");
    run_turns(f->children.loop, 10);
    program_cancel(f->program);
    f->program = NULL;
    helper_loop_expect_idle(&f->children);
    assert_int_equal(f->results, 0);
    program_cancel(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cannot_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_much_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_excess_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_child_holds_the_pipe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_surroundings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
