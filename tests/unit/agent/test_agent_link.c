/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that cannot write to its driver. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/fake_driver.h"

/* What an agent cannot write to its driver it cannot tell it either: its stderr has the reason. */
static void test_cannot_write(void **state)
{
    (void)state;
    int driver[2], mute[2], told[2];
    assert_int_equal(fd_socketpair(driver), 0);
    assert_int_equal(fd_pipe(mute), 0);
    assert_int_equal(fd_pipe(told), 0);
    pid_t agent = fork();
    assert_true(agent >= 0);
    if (agent == 0) {
        dup2(told[1], STDERR_FILENO);
        fd_close(&told[1]);
        fd_close(&driver[1]);
        fd_close(&mute[1]);
        fake_agent(driver[0], mute[0]); /* the end of a pipe that is for reading */
    }
    fd_close(&told[1]);
    fd_close(&driver[0]);
    fd_close(&mute[0]);
    struct pollfd tried = {.fd = mute[1]}; /* it closes what it cannot write to */
    assert_int_equal(poll(&tried, 1, RUN_LIMIT_MS), 1);
    fd_close(&driver[1]);
    fd_close(&mute[1]);
    char text[256] = "";
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length < sizeof(text) - 1; length += (size_t)got)
        got = fd_read(told[0], text + length, sizeof(text) - 1 - length);
    assert_string_equal(text,
                        "hvdrun-agent: cannot write to the connection: Bad file descriptor\n");
    fd_close(&told[0]);
    int status = -1;
    assert_int_equal(waitpid(agent, &status, 0), agent);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
