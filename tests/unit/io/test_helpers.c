/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/helpers.h"
#include "unit.h"

#define WAIT_MS 20000

struct seen {
    int count, wait_status;
};

static void exited(void *context, int wait_status)
{
    struct seen *seen = context;
    seen->count++;
    seen->wait_status = wait_status;
}

static void hand_in(void *context, const struct reaper_exit *exit)
{
    helpers_exited(context, exit);
}

static pid_t start(struct helpers *helpers, const char *script, struct seen *seen, int output)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct child_spec spec = {
        .path = "/bin/sh", .argv = argv, .fds = {0, output, 2}, .keep_fd = -1};
    struct error err = ERROR_INIT;
    pid_t pid = helpers_start(helpers, &spec, seen == NULL ? NULL : exited, seen, &err);
    if (pid < 0)
        fail_msg("%s", err.text);
    return pid;
}

/* Until the helper is gone. */
static void wait_for(struct helpers *helpers, struct reaper *reaper, pid_t pid)
{
    int64_t limit = unit_limit_ms(WAIT_MS);
    while (helpers_has(helpers, pid)) {
        assert_true(!unit_is_over(limit));
        reaper_collect(reaper);
        usleep(2000);
    }
}

static void test_exit_comes_once(void **state)
{
    (void)state;
    struct helpers *helpers = helpers_create();
    struct reaper *reaper = reaper_create(hand_in, helpers);
    struct seen first = {0}, second = {0};
    pid_t a = start(helpers, "exit 7", &first, 1), b = start(helpers, "kill -9 $$", &second, 1);
    assert_true(helpers_has(helpers, a) && helpers_has(helpers, b));
    assert_false(helpers_has(helpers, getpid()));
    wait_for(helpers, reaper, a);
    wait_for(helpers, reaper, b);
    assert_int_equal(first.count, 1);
    assert_int_equal(WEXITSTATUS(first.wait_status), 7);
    assert_int_equal(second.count, 1);
    assert_int_equal(WTERMSIG(second.wait_status), SIGKILL);
    struct reaper_exit stranger = {.pid = a};
    helpers_exited(helpers, &stranger); /* somebody else's now */
    assert_int_equal(first.count, 1);
    reaper_destroy(reaper);
    helpers_destroy(helpers);
}

/* A session of its own, nothing blocked, our environment. */
static void test_surroundings(void **state)
{
    (void)state;
    struct helpers *helpers = helpers_create();
    struct reaper *reaper = reaper_create(hand_in, helpers);
    int ends[2];
    char text[256] = "";
    sigset_t all, before;
    assert_int_equal(fd_pipe(ends), 0);
    setenv("HELPERS_TEST", "seen", 1);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = start(helpers,
                      "read -r _ _ _ _ _ session _ </proc/$$/stat; "
                      "[ $session = $$ ] && echo $HELPERS_TEST $(grep SigBlk /proc/$$/status)",
                      NULL, ends[1]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    wait_for(helpers, reaper, pid);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "seen SigBlk: 0000000000000000\n");
    close(ends[0]);
    reaper_destroy(reaper);
    helpers_destroy(helpers);
}

static void test_let_go(void **state)
{
    (void)state;
    struct helpers *helpers = helpers_create();
    struct reaper *reaper = reaper_create(hand_in, helpers);
    struct seen polite = {0}, stubborn = {0};
    int ends[2];
    char byte;
    assert_int_equal(fd_pipe(ends), 0);
    pid_t a = start(helpers, "sleep 100 & wait", &polite, 1);
    pid_t b =
        start(helpers, "trap '' TERM; echo; while :; do sleep 0.05; done", &stubborn, ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1); /* the trap is set */
    helpers_let_go(helpers, a);
    helpers_let_go(helpers, b);
    helpers_let_go(helpers, b);
    wait_for(helpers, reaper, a);
    /* The other is killed when it is looked at after its second: with somebody's exit. */
    int64_t limit = unit_limit_ms(WAIT_MS);
    while (helpers_has(helpers, b)) {
        assert_true(!unit_is_over(limit));
        pid_t other = start(helpers, "exit 0", NULL, 1);
        wait_for(helpers, reaper, other);
        usleep(50000);
        reaper_collect(reaper);
    }
    assert_int_equal(polite.count, 0);
    assert_int_equal(stubborn.count, 0);
    close(ends[0]);
    close(ends[1]);
    reaper_destroy(reaper);
    helpers_destroy(helpers);
}

static void test_destroy_kills_the_group(void **state)
{
    (void)state;
    struct helpers *helpers = helpers_create();
    int ends[2];
    char byte;
    assert_int_equal(fd_pipe(ends), 0);
    start(helpers, "sleep 100 & echo; wait", NULL, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    helpers_destroy(helpers);
    assert_int_equal(read(ends[0], &byte, 1), 0); /* both have ended: nobody holds the pipe */
    assert_true(wait(NULL) > 0);
    close(ends[0]);
    helpers_destroy(NULL);
}

/* It goes on when all others end. */
static void test_forget(void **state)
{
    (void)state;
    struct helpers *helpers = helpers_create();
    pid_t kept = start(helpers, "exec sleep 1000", NULL, 1);
    pid_t other = start(helpers, "exec sleep 1000", NULL, 1);
    int wait_status;
    helpers_forget(helpers, kept);
    helpers_forget(helpers, kept);
    helpers_forget(helpers, getpid());
    assert_false(helpers_has(helpers, kept));
    assert_int_equal(helpers_count(helpers), 1);
    helpers_destroy(helpers);
    assert_int_equal(waitpid(other, &wait_status, 0), other);
    assert_int_equal(WTERMSIG(wait_status), SIGKILL);
    assert_int_equal(waitpid(kept, &wait_status, WNOHANG), 0);
    kill(kept, SIGTERM);
    assert_int_equal(waitpid(kept, &wait_status, 0), kept);
    assert_int_equal(WTERMSIG(wait_status), SIGTERM);
}

static void test_not_found(void **state)
{
    (void)state;
    struct helpers *helpers = helpers_create();
    struct seen seen = {0};
    char *argv[] = {"x", NULL};
    struct child_spec spec = {
        .path = "/nonexistent", .argv = argv, .fds = {0, 1, 2}, .keep_fd = -1};
    struct error err = ERROR_INIT;
    assert_int_equal(helpers_start(helpers, &spec, exited, &seen, &err), -1);
    assert_non_null(strstr(err.text, "/nonexistent"));
    assert_int_equal(seen.count, 0);
    while (wait(NULL) > 0)
        continue;
    helpers_destroy(helpers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_comes_once), cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_let_go),          cmocka_unit_test(test_destroy_kills_the_group),
        cmocka_unit_test(test_forget),          cmocka_unit_test(test_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
