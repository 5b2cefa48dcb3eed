/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery by a script: real scripts, a real loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "discovery_fixture.h"

#define PERIOD_MS 20

static struct discovery *create(struct fixture *f, const char *script, int64_t limit_ms,
                                struct error *err)
{
    struct discovery_config config = {.loop = f->children.loop,
                                      .helpers = f->children.helpers,
                                      .log = &f->log,
                                      .script = script,
                                      .period_ms = PERIOD_MS,
                                      .limit_ms = limit_ms};
    return discovery_create(&config, &fixture_ops, f, err);
}

/* Starts with a script that runs these lines. */
static void begin_within(struct fixture *f, const char *lines, int64_t limit_ms)
{
    char *text AUTO_FREE = mem_printf("#!/bin/sh\ncd %s\n%s\n", f->root, lines);
    char *path AUTO_FREE = in_root(f, "script");
    struct error err = ERROR_INIT;
    write_file(f, "script", text, 0755);
    f->discovery = create(f, path, limit_ms, &err);
    if (f->discovery == NULL)
        fail_msg("%s", err.text);
    discovery_begin(f->discovery);
    assert_int_equal(f->lists + f->failures, 0);
}

static void begin(struct fixture *f, const char *lines)
{
    begin_within(f, lines, NEVER_MS);
}

static void test_change(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a:4\nb:2\n", 0644);
    begin(f, "cat hosts; echo x >>runs");
    expect_list(f, "a:4 b:2");
    expect_silent_runs(f, 3);
    shell(f, "printf 'b:2\\na:4\\n' >new && mv new hosts");
    expect_silent_runs(f, 3);
    shell(f, "echo c >>hosts");
    expect_list(f, "b:2 a:4 c:1");
    shell(f, ": >new && mv new hosts");
    expect_list(f, "");
    shell(f, "echo c:3 >new && mv new hosts");
    expect_list(f, "c:3");
    assert_int_equal(f->failures, 0);
}

static void test_nothing_at_first(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "", 0644);
    begin(f, "cat hosts");
    expect_list(f, "");
    shell(f, "echo a >hosts");
    expect_list(f, "a:1");
}

static void test_slots_per_host(void **state)
{
    struct fixture *f = *state;
    struct discovery_config config = {.loop = f->children.loop,
                                      .helpers = f->children.helpers,
                                      .log = &f->log,
                                      .script = "printf 'a\\nb:2\\n'",
                                      .period_ms = PERIOD_MS,
                                      .limit_ms = NEVER_MS,
                                      .slots_per_host = 8};
    f->discovery = discovery_create(&config, &fixture_ops, f, NULL);
    assert_non_null(f->discovery);
    discovery_begin(f->discovery);
    expect_list(f, "a:8 b:2");
}

static void test_first_failure_ends_it(void **state)
{
    struct fixture *f = *state;
    begin(f, "echo x >>runs; echo 'no such cluster' >&2; echo a; exit 3");
    expect_failure(f, true, "script ended with exit status 3: no such cluster");
    expect_silence(f, PERIOD_MS * 5);
    shell(f, "[ $(wc -l <runs) -eq 1 ]");
}

static void test_later_failure_is_told_once(void **state)
{
    struct fixture *f = *state;
    write_file(f, "ill", "", 0644); /* a list, though an empty one */
    begin(f, "echo x >>runs; . ./ill");
    expect_list(f, "");
    shell(f, "echo 'echo \"12:31:07 down $$\" >&2; exit 1' >new; mv new ill");
    expect_failure(f, false, "exit status 1: 12:31:07 down ");
    expect_silent_runs(f, 3);
    shell(f, "echo 'kill -9 $$' >new; mv new ill");
    expect_failure(f, false, "script was killed by signal 9 (Killed)");
    shell(f, "echo 'echo \"12:31:07 down $$\" >&2; exit 1' >new; mv new ill");
    expect_failure(f, false, "exit status 1: 12:31:07 down ");
    shell(f, ": >new; mv new ill"); /* well again, with the list that was known */
    expect_silent_runs(f, 3);
    shell(f, "echo 'exit 1' >new; mv new ill");
    expect_failure(f, false, "exit status 1");
    shell(f, "echo 'echo b' >new; mv new ill");
    expect_list(f, "b:1");
}

static void test_garbage(void **state)
{
    struct fixture *f = *state;
    begin(f, "echo x >>runs; echo a:4; [ -e ill ] && printf '<html>\\nb;c\\n'; true");
    expect_list(f, "a:4");
    shell(f, ": >ill");
    expect_failure(f, false, "script: line 2: '<html>': not a host name");
    expect_silent_runs(f, 3);
}

static void test_garbage_at_first(void **state)
{
    struct fixture *f = *state;
    begin(f, "printf 'a:4\\n\\001\\377\\n'");
    expect_failure(f, true,
                   "line 2: '?"
                   "?'");
}

static void test_endless_output(void **state)
{
    struct fixture *f = *state;
    begin(f, "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done & yes b; wait");
    expect_failure(f, true, "printed more than 1048576 bytes");
    helper_loop_expect_idle(&f->children);
}

/* A busy machine may not even start a script within a short limit: then a longer one is tried. */
static const int64_t limits_ms[] = {300, 3000, 30000};

/* What ignores every polite word and has children is killed with them. */
static void test_slow(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 3 && strstr(f->why, "it said: ") == NULL; i++) {
        discovery_destroy(f->discovery);
        f->lists = f->failures = 0;
        begin_within(f,
                     "trap '' TERM HUP; echo 'asking the cloud' >&2; echo a; sleep 1000 & sleep "
                     "1000",
                     limits_ms[i]);
        expect_failure(f, true, "script did not end within ");
    }
    assert_non_null(strstr(f->why, " s and was killed; it said: asking"));
    helper_loop_expect_idle(&f->children);
}

static void test_slow_later(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 3 && f->lists == 0; i++) {
        discovery_destroy(f->discovery);
        f->failures = 0;
        begin_within(f, "echo a; [ ! -e slow ] || sleep 1000", limits_ms[i]);
        wait_told(f, 1);
    }
    assert_string_equal(f->list, "a:1");
    shell(f, ": >slow");
    expect_failure(f, false, "did not end within ");
    shell(f, "rm slow");
    expect_silence(f, PERIOD_MS * 5);
}

/* A child that goes on holds the pipe: the exit is what counts, and the child is killed. */
static void test_child_holds_the_pipe(void **state)
{
    struct fixture *f = *state;
    begin(f, "echo a:4; echo x >>runs; sleep 1000 &");
    expect_list(f, "a:4");
    discovery_pause(f->discovery, true);
    helper_loop_expect_idle(&f->children);
}

/* A daemon is beyond our reach, but is not waited for. */
static void test_daemon_holds_the_pipe(void **state)
{
    struct fixture *f = *state;
    begin(f, "[ -e pid ] || { setsid sleep 1000 & echo $! >pid; }; echo a:4");
    expect_list(f, "a:4");
    shell(f, "kill -9 $(cat pid)");
}

static void test_stderr_goes_to_the_log(void **state)
{
    struct fixture *f = *state;
    begin(f, "echo one >&2; printf 'two\\033[31m' >&2; echo a");
    expect_list(f, "a:1");
    assert_non_null(strstr(buf_text(&f->logged), "script: one\n"));
    assert_non_null(strstr(buf_text(&f->logged), "script: two[31m\n"));
}

static void test_surroundings(void **state)
{
    struct fixture *f = *state;
    begin(f, "read line && exit 1; cut -d' ' -f6 </proc/$$/stat >session; echo $$ >pid; echo a");
    expect_list(f, "a:1");
    shell(f, "cmp session pid");
}

static void refused(struct fixture *f, const char *script, int status, const char *part)
{
    struct error err = ERROR_INIT;
    assert_null(create(f, script, NEVER_MS, &err));
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" lacks '%s'", err.text, part);
    assert_int_equal(err.status, status);
}

static void test_no_program(void **state)
{
    struct fixture *f = *state;
    char *path AUTO_FREE = in_root(f, "script");
    refused(f, path, STATUS_NOT_FOUND, "No such file");
    refused(f, "hvdrun-no-such-program", STATUS_NOT_FOUND, "in PATH");
    write_file(f, "script", "#!/bin/sh\necho a\n", 0644);
    refused(f, path, STATUS_NOT_EXECUTABLE, "chmod +x makes it executable");
    refused(f, f->root, STATUS_NOT_EXECUTABLE, "directory");
    refused(f, NULL, STATUS_USAGE, "one of them");
}

/* Without its first line: the shell runs it, as execvp(3) would have it. */
static void test_script_without_interpreter(void **state)
{
    struct fixture *f = *state;
    char *path AUTO_FREE = in_root(f, "plain");
    write_file(f, "plain", "echo a:2\n", 0755);
    f->discovery = create(f, path, NEVER_MS, NULL);
    assert_non_null(f->discovery);
    discovery_begin(f->discovery);
    expect_list(f, "a:2");
}

static void test_missing_interpreter(void **state)
{
    struct fixture *f = *state;
    char *path AUTO_FREE = in_root(f, "plain");
    write_file(f, "plain", "#!/no/such/shell\n", 0755);
    f->discovery = create(f, path, NEVER_MS, NULL);
    assert_non_null(f->discovery);
    discovery_begin(f->discovery);
    expect_failure(f, true, "cannot execute");
}

/* As horovodrun: a line for the shell. */
static void test_line_of_shell(void **state)
{
    struct fixture *f = *state;
    f->discovery = create(f, "printf 'b:3\\n' | sed s/b/a/", NEVER_MS, NULL);
    assert_non_null(f->discovery);
    discovery_begin(f->discovery);
    expect_list(f, "a:3");
}

static void test_pause(void **state)
{
    struct fixture *f = *state;
    write_file(f, "hosts", "a\n", 0644);
    begin(f, "cat hosts");
    discovery_pause(f->discovery, true); /* the first run is on its way */
    expect_silence(f, PERIOD_MS * 10);
    discovery_pause(f->discovery, false);
    expect_list(f, "a:1");
    discovery_pause(f->discovery, true);
    shell(f, "echo b >hosts");
    expect_silence(f, PERIOD_MS * 10);
    discovery_pause(f->discovery, false);
    expect_list(f, "b:1");
}

static void test_destroyed_in_call(void **state)
{
    struct fixture *f = *state;
    f->destroy_in_call = true;
    begin(f, "echo a");
    expect_list(f, "a:1");
    assert_null(f->discovery);
    f->lists = 0;
    begin(f, "exit 1");
    expect_failure(f, true, "exit status 1");
    assert_null(f->discovery);
}

static void test_destroyed_while_running(void **state)
{
    struct fixture *f = *state;
    begin(f, "trap '' TERM; echo $$ >pid; sleep 1000 & sleep 1000");
    run_turns(f->children.loop, 10);
    discovery_destroy(f->discovery);
    f->discovery = NULL;
    helper_loop_expect_idle(&f->children);
    f->discovery = create(f, "true", NEVER_MS, NULL); /* never begun */
    assert_non_null(f->discovery);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_change, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slots_per_host, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_failure_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_later_failure_is_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_child_holds_the_pipe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_daemon_holds_the_pipe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stderr_goes_to_the_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_surroundings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_script_without_interpreter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_interpreter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_line_of_shell, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_in_call, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_while_running, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
