/* SPDX-License-Identifier: Apache-2.0 */
/* Real probes: little shell scripts that count how often they were asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/departure.h"
#include "agent/room_test.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "helpers_fixture.h"
#include "unit.h"

struct fixture {
    struct helper_loop children;
    struct preempt *preempt;
    struct log log;
    char folder[32];
    struct buf warnings; /* a line each */
    int warning_count, stop_at_warning;
    int notices, stop_at_notice;
    bool has_deadline;
    int64_t within_ms;
    char why[512];
    bool destroy_in_notice;
};

static void on_log(void *context, enum log_level level, const char *line)
{
    struct fixture *f = context;
    assert_int_equal(level, LOG_WARNING);
    assert_null(strchr(line, '\n'));
    buf_printf(&f->warnings, "%s\n", line);
    f->warning_count++;
    if (f->warning_count == f->stop_at_warning)
        loop_stop(f->children.loop);
}

static void on_notice(void *context, bool has_deadline, int64_t within_ms, const char *why)
{
    struct fixture *f = context;
    f->notices++;
    f->has_deadline = has_deadline;
    f->within_ms = within_ms;
    snprintf(f->why, sizeof(f->why), "%s", why);
    if (f->destroy_in_notice) {
        preempt_destroy(f->preempt);
        f->preempt = NULL;
    }
    if (f->notices == f->stop_at_notice)
        loop_stop(f->children.loop);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    helper_loop_open(&f->children);
    f->log = (struct log){.level = LOG_DEBUG, .emit = on_log, .context = f};
    buf_init(&f->warnings, 1 << 20);
    snprintf(f->folder, sizeof(f->folder), "/tmp/preempt-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    *state = f;
    return 0;
}

static void remove_file(const struct fixture *f, const char *name)
{
    char *path AUTO_FREE = mem_printf("%s/%s", f->folder, name);
    unlink(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    preempt_destroy(f->preempt);
    f->preempt = NULL;
    helper_loop_expect_idle(&f->children);
    helper_loop_close(&f->children);
    buf_destroy(&f->warnings);
    remove_file(f, "asked");
    remove_file(f, "probe");
    remove_file(f, "pid");
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

/* $1 is a file that gets a byte for every question; $n is how many came before. */
#define COUNT "n=$(($(wc -c <\"$1\" 2>/dev/null || echo 0))); printf x >>\"$1\"; "

static void begin(struct fixture *f, const char *script)
{
    char *asked AUTO_FREE = mem_printf("%s/asked", f->folder);
    char *const words[] = {(char *)"sh", (char *)"-c", (char *)script, (char *)"probe", asked};
    f->preempt =
        preempt_create(f->children.loop, f->children.helpers, words, 5, 1, &f->log, on_notice, f);
}

static long times_asked(const struct fixture *f)
{
    char *path AUTO_FREE = mem_printf("%s/asked", f->folder);
    struct stat info = {.st_size = 0};
    return stat(path, &info) < 0 ? 0 : (long)info.st_size;
}

static void until_notice(struct fixture *f, int count)
{
    f->stop_at_notice = count;
    f->stop_at_warning = f->warning_count + 1; /* no test waits for a notice through warnings */
    run_loop(f->children.loop);
    if (f->notices != count)
        fail_msg("no notice, but: %s", buf_text(&f->warnings));
}

static void until_warning(struct fixture *f, int count)
{
    f->stop_at_warning = count;
    run_loop(f->children.loop);
    assert_int_equal(f->warning_count, count);
}

static void until_asked(struct fixture *f, long count)
{
    int64_t end = unit_limit_ms(RUN_LIMIT_MS);
    while (times_asked(f) < count && !unit_is_over(end))
        run_turns(f->children.loop, 5);
    assert_true(times_asked(f) >= count);
}

static void expect_warning(const struct fixture *f, const char *text)
{
    if (strstr(buf_text(&f->warnings), text) == NULL)
        fail_msg("'%s' is not in: %s", text, buf_text(&f->warnings));
}

/* No notice three times, then one with a deadline; it is not asked any more. */
static void test_deadline(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT "[ $n -lt 3 ] && exit 1; echo '120.5  spot instance: terminate '; echo more");
    until_notice(f, 1);
    assert_true(f->has_deadline);
    assert_int_equal(f->within_ms, 120500);
    assert_string_equal(f->why, "spot instance: terminate");
    run_turns(f->children.loop, 200);
    assert_int_equal(times_asked(f), 4);
    assert_int_equal(f->notices, 1);
    assert_int_equal(f->warning_count, 0);
}

/* Without a deadline it is asked on; the same notice again is not news, a deadline is. */
static void test_deadline_later(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT
          "case $n in 0|1) echo rebalance;; 2) exit 1;; 3) echo rebalance;; *) echo 30 end;; esac");
    until_notice(f, 1);
    assert_false(f->has_deadline);
    assert_string_equal(f->why, "rebalance");
    until_notice(f, 2);
    assert_true(f->has_deadline);
    assert_int_equal(f->within_ms, 30000);
    assert_string_equal(f->why, "end");
    run_turns(f->children.loop, 100);
    assert_int_equal(times_asked(f), 5);
    assert_int_equal(f->warning_count, 0);
}

struct answer {
    const char *script;
    int64_t within_ms; /* -1: no deadline */
    const char *why;
};

static void test_answers(void **state)
{
    struct fixture *f = *state;
    static const struct answer answers[] = {
        {"exit 0", -1, "the preemption probe reported a notice"},
        {"echo", -1, "the preemption probe reported a notice"},
        {"echo 0", 0, "the preemption probe reported a notice"},
        {"printf '15 no newline'", 15000, "no newline"},
        {"printf '7\\tevicted'", 7000, "evicted"},
        {"echo .5 soon", 500, "soon"},
        {"echo -3 late", -1, "-3 late"},
        {"echo 1e3 seconds", -1, "1e3 seconds"},
        {"echo 0x10 x", -1, "0x10 x"},
        {"echo inf x", -1, "inf x"},
        {"echo 1.2.3 x", -1, "1.2.3 x"},
        {"echo . x", -1, ". x"},
        {"echo 99999999999999999999 x", -1, "99999999999999999999 x"},
        {"printf '5 a\\033[31mb\\377c\\rd\\177\\n6 second line'", 5000, "a?[31mb?c?d?"},
        {"echo noise >&2; echo 5 fine", 5000, "fine"},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        f->notices = 0;
        begin(f, answers[i].script);
        until_notice(f, 1);
        assert_string_equal(f->why, answers[i].why);
        assert_int_equal(f->has_deadline, answers[i].within_ms >= 0);
        if (f->has_deadline)
            assert_int_equal(f->within_ms, answers[i].within_ms);
        preempt_destroy(f->preempt);
        f->preempt = NULL;
    }
    assert_int_equal(f->warning_count, 0);
}

/* Once for each distinct text, with the last line of stderr; it is asked on. */
static void test_other_status(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT "echo first >&2; echo the service does not answer >&2; echo >&2;"
                   "[ $n -lt 5 ] && exit 2; [ $n -lt 7 ] && exit 3; kill -9 $$");
    until_warning(f, 3);
    until_asked(f, 10);
    assert_int_equal(f->warning_count, 3);
    assert_int_equal(f->notices, 0);
    expect_warning(
        f, "preemption probe sh: it ended with exit status 2: the service does not answer;");
    expect_warning(f, "it ended with exit status 3: the service does not answer;");
    expect_warning(f, "it was killed by signal 9 (Killed): the service does not answer;");
}

static void test_endless_kinds_of_warnings(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT "echo problem $n >&2; exit 2");
    until_asked(f, 25);
    assert_int_equal(f->warning_count, 17);
    expect_warning(f, "further warnings are not shown");
}

/* A megabyte on each stream: neither kept nor waited for. */
static void test_much_output(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT "[ $n -gt 0 ] && { printf '9 '; yes | head -c 1000000; exit 0; };"
                   "yes y | head -c 1000000 >&2; printf '%01000d' 7 >&2; exit 4");
    until_warning(f, 1);
    expect_warning(f, "it ended with exit status 4: 0000");
    assert_true(strlen(buf_text(&f->warnings)) < 400);
    until_notice(f, 1);
    assert_int_equal(f->within_ms, 9000);
    assert_string_equal(f->why, "y");
}

static pid_t read_pid(const struct fixture *f)
{
    AUTO_BUF struct buf text = BUF_INIT(100);
    char *path AUTO_FREE = mem_printf("%s/pid", f->folder);
    return fd_read_file(path, &text, NULL) < 0 ? 0 : (pid_t)strtol(buf_text(&text), NULL, 10);
}

static bool is_gone(pid_t pid)
{
    AUTO_BUF struct buf text = BUF_INIT(4096);
    char *path AUTO_FREE = mem_printf("/proc/%d/stat", (int)pid);
    if (fd_read_file(path, &text, NULL) < 0)
        return true;
    const char *state = strrchr(buf_text(&text), ')');
    return state == NULL || state[2] == 'Z' || state[2] == 'X';
}

static void expect_gone(struct fixture *f, pid_t pid)
{
    int64_t end = unit_limit_ms(RUN_LIMIT_MS);
    assert_true(pid > 0);
    while (!is_gone(pid) && !unit_is_over(end))
        run_turns(f->children.loop, 5);
    assert_true(is_gone(pid));
}

#define LEAVE_A_CHILD "sleep 1000 & echo $! >${1%asked}pid; "

/* The limit ends it with all that it has started, though it ignores TERM. */
static void test_limit(void **state)
{
    struct fixture *f = *state;
    begin(f, "trap '' TERM; " COUNT LEAVE_A_CHILD "echo stuck >&2; wait; sleep 1000");
    preempt_set_limit(f->preempt, 300);
    until_warning(f, 1);
    expect_warning(f, "it did not end within 0.3 s and was killed; it said: stuck");
    expect_gone(f, read_pid(f));
    preempt_set_limit(f->preempt, 20);
    until_asked(f, 2);
    assert_int_equal(f->notices, 0);
}

/* A child that holds the streams does not delay the answer, and does not stay. */
static void test_child_left_behind(void **state)
{
    struct fixture *f = *state;
    begin(f, LEAVE_A_CHILD "echo 5 soon");
    until_notice(f, 1);
    assert_string_equal(f->why, "soon");
    expect_gone(f, read_pid(f));
}

static void test_never_two(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT
          "[ -e ${1%asked}pid ] && exit 5; : >${1%asked}pid; sleep 0.05; rm ${1%asked}pid; exit 1");
    until_asked(f, 6);
    assert_int_equal(f->warning_count, 0);
    preempt_destroy(f->preempt);
    f->preempt = NULL;
}

/* A session of its own, no stdin, no signal blocked, nothing of our loop. */
static void test_surroundings(void **state)
{
    struct fixture *f = *state;
    begin(f, "read x && exit 7; set -- $(cat /proc/$$/stat); [ \"$6\" = $$ ] || exit 8;"
             "grep -q '^SigBlk:.0*$' /proc/self/status || exit 9;"
             "ls -l /proc/$$/fd | grep -q anon_inode && exit 10;"
             "echo 1 right");
    until_notice(f, 1);
    assert_string_equal(f->why, "right");
    assert_int_equal(f->warning_count, 0);
}

static void test_along_path(void **state)
{
    struct fixture *f = *state;
    char *path AUTO_FREE = mem_printf("%s/probe", f->folder);
    char *old AUTO_FREE = mem_strdup(getenv("PATH"));
    char *both AUTO_FREE = mem_printf("%s:%s", f->folder, old);
    static const char script[] = "#!/bin/sh\necho \"3 $2 $1\"\n";
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_int_equal(fd_write_all(fd, script, strlen(script)), 0);
    close(fd);
    assert_int_equal(setenv("PATH", both, 1), 0);
    char *const words[] = {(char *)"probe", (char *)"$(id)", (char *)"a;b *"};
    f->preempt =
        preempt_create(f->children.loop, f->children.helpers, words, 3, 1, &f->log, on_notice, f);
    until_notice(f, 1);
    assert_string_equal(f->why, "a;b * $(id)"); /* no shell has seen it */
    assert_int_equal(setenv("PATH", old, 1), 0);
}

static void test_not_found(void **state)
{
    struct fixture *f = *state;
    char *const words[] = {(char *)"no-such-preemption-probe"};
    f->preempt =
        preempt_create(f->children.loop, f->children.helpers, words, 1, 1, &f->log, on_notice, f);
    until_warning(f, 1);
    run_turns(f->children.loop, 100);
    assert_int_equal(f->warning_count, 1);
    expect_warning(f, "was not found in PATH");
}

static void test_destroy_while_it_runs(void **state)
{
    struct fixture *f = *state;
    begin(f, COUNT LEAVE_A_CHILD "wait");
    until_asked(f, 1);
    int64_t end = unit_limit_ms(RUN_LIMIT_MS);
    while (read_pid(f) == 0 && !unit_is_over(end))
        run_turns(f->children.loop, 5);
    preempt_destroy(f->preempt);
    f->preempt = NULL;
    expect_gone(f, read_pid(f));
}

static void test_destroy_in_notice(void **state)
{
    struct fixture *f = *state;
    f->destroy_in_notice = true;
    begin(f, "echo maybe");
    until_notice(f, 1);
    run_turns(f->children.loop, 20);
    assert_int_equal(f->notices, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadline_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_status, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless_kinds_of_warnings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_child_left_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_never_two, setup, teardown),
        cmocka_unit_test_setup_teardown(test_surroundings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_along_path, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_while_it_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_in_notice, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
