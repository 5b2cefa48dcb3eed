/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal is a pseudo-terminal here, in place of stdin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "output/terminal.h"

static int before, side;

static int put_in_place(void **state)
{
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        return -1;
    side = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    before = dup(STDIN_FILENO);
    *state = (void *)(intptr_t)terminal;
    return dup2(side, STDIN_FILENO) < 0;
}

static int put_back(void **state)
{
    dup2(before, STDIN_FILENO);
    close(before);
    close(side);
    close((int)(intptr_t)*state);
    return 0;
}

static bool is_raw(void)
{
    struct termios modes;
    assert_int_equal(tcgetattr(STDIN_FILENO, &modes), 0);
    return (modes.c_lflag & ICANON) == 0;
}

static void raw_and_back(void **state)
{
    (void)state;
    assert_false(is_raw());
    struct terminal *terminal = terminal_raw();
    assert_non_null(terminal);
    assert_true(is_raw());
    terminal_restore(terminal);
    assert_false(is_raw());
    terminal_raw_again(terminal);
    assert_true(is_raw());
    terminal_destroy(terminal);
    assert_false(is_raw());
}

static void not_a_terminal(void **state)
{
    (void)state;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), kept = dup(STDIN_FILENO);
    dup2(null, STDIN_FILENO);
    assert_null(terminal_raw());
    terminal_restore(NULL);
    terminal_raw_again(NULL);
    terminal_destroy(NULL);
    assert_true(terminal_may_read());
    dup2(kept, STDIN_FILENO);
    close(kept);
    close(null);
}

static void its_size(void **state)
{
    (void)state;
    const struct winsize size = {.ws_row = 40, .ws_col = 100};
    assert_int_equal(ioctl(STDIN_FILENO, TIOCSWINSZ, &size), 0);
    uint32_t rows, columns;
    terminal_size(&rows, &columns);
    assert_int_equal(rows, 40);
    assert_int_equal(columns, 100);

    /* stdin and stdout are something else: then that of stderr */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), out = dup(STDOUT_FILENO),
        err = dup(STDERR_FILENO);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(side, STDERR_FILENO);
    terminal_size(&rows, &columns);
    dup2(null, STDERR_FILENO);
    uint32_t no_rows = 7, no_columns = 7;
    terminal_size(&no_rows, &no_columns);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(null);
    close(out);
    close(err);
    assert_int_equal(rows, 40);
    assert_int_equal(columns, 100);
    assert_int_equal(no_rows, 0);
    assert_int_equal(no_columns, 0);
}

/* A session whose terminal this is; 0 when all is as it should be. */
static int in_a_session(bool front)
{
    if (setsid() < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)
        return 10;
    signal(SIGHUP, SIG_IGN);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        if (front) {
            signal(SIGTTOU, SIG_IGN);
            tcsetpgrp(STDIN_FILENO, getpgrp());
        }
        struct terminal *terminal = terminal_raw();
        struct termios modes;
        tcgetattr(STDIN_FILENO, &modes);
        bool raw = (modes.c_lflag & ICANON) == 0;
        bool right = terminal_may_read() == front && raw == front;
        terminal_destroy(terminal);
        _exit(right ? 0 : 11);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 12;
    return WEXITSTATUS(status);
}

static void only_in_front(void **state)
{
    (void)state;
    for (int front = 0; front < 2; front++) {
        pid_t child = fork();
        if (child == 0)
            _exit(in_a_session(front != 0));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(raw_and_back, put_in_place, put_back),
        cmocka_unit_test_setup_teardown(not_a_terminal, put_in_place, put_back),
        cmocka_unit_test_setup_teardown(its_size, put_in_place, put_back),
        cmocka_unit_test_setup_teardown(only_in_front, put_in_place, put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
