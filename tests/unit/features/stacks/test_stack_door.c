/* SPDX-License-Identifier: Apache-2.0 */
/* A helper that may not trace a process gets what it needs from its agent, which may. */
#include <errno.h>
#include <fcntl.h>
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
#include "features/stacks/stack_door.h"
#include "loop_fixture.h"
#include "stacks/tasks.h"
#include "unit.h"

#define NOBODY 65534
#define SECOND INT64_C(1000000000)

static const char secret[] = "what only those who may trace can read";

/* A process that waits, and one that spins. */
static pid_t start_target(bool spins)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile bool go = spins;;) {
            if (!go)
                pause();
        }
    }
    return pid;
}

static bool can_read(int memory)
{
    char got[sizeof(secret)] = "";
    return fd_pread(memory, got, sizeof(got), (off_t)(uintptr_t)secret) == (ssize_t)sizeof(got) &&
           memcmp(got, secret, sizeof(got)) == 0;
}

/* A number for each step that fails; 0: all is as it should be. */
static int use_rights(const struct rights *rights, pid_t waiting, pid_t spinning)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    int memory AUTO_FD = rights->memory(rights->context, waiting);
    struct snapshot_order orders[2] = {{.tid = waiting}, {.tid = spinning}};
    if (!can_read(memory))
        return 1;
    if (rights->call(rights->context, waiting, waiting, &text) < 0 || text.length == 0)
        return 2;
    for (int i = 0; i < 2; i++) {
        struct snapshot_order *order = &orders[i];
        rights->stop(rights->context, order->tid, memory, unit_limit_ns(10 * SECOND), order, 1);
        bool right = order->error == 0 && order->out.registers.pc != 0 &&
                     order->out.stack_length > 0 && order->out.stack_at != 0;
        snapshot_destroy(&order->out);
        if (!right)
            return 3 + i;
    }
    buf_clear(&text);
    int none AUTO_FD = rights->memory(rights->context, 1 << 30);
    if (none >= 0 || rights->call(rights->context, 1 << 30, 1 << 30, &text) == 0)
        return 5;
    return 0;
}

/* As a user who may do nothing to the targets. */
static int be_helper(int fd, pid_t waiting, pid_t spinning)
{
    struct rights rights = stack_door_rights(&fd);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 20;
    int memory AUTO_FD = rights_own.memory(NULL, waiting);
    return memory >= 0 ? 21 : use_rights(&rights, waiting, spinning);
}

static void test_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t waiting = start_target(false), spinning = start_target(true);
    int ends[2], status = -1;
    struct loop *loop = loop_create(NULL);
    assert_int_equal(fd_socketpair(ends), 0);
    pid_t helper = fork();
    if (helper == 0)
        _exit(be_helper(ends[1], waiting, spinning));
    fd_close(&ends[1]);
    struct stack_door *door = stack_door_create(loop, ends[0], NULL);
    run_until(loop, waitpid(helper, &status, WNOHANG) == helper);
    stack_door_destroy(door);
    loop_destroy(loop);
    kill(waiting, SIGKILL);
    kill(spinning, SIGKILL);
    waitpid(waiting, NULL, 0);
    waitpid(spinning, NULL, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Who may do it itself does not ask. */
static void test_own_rights(void **state)
{
    (void)state;
    int none = -1;
    struct rights rights = stack_door_rights(&none);
    pid_t waiting = start_target(false), spinning = start_target(true);
    int result = use_rights(&rights, waiting, spinning);
    kill(waiting, SIGKILL);
    kill(spinning, SIGKILL);
    waitpid(waiting, NULL, 0);
    waitpid(spinning, NULL, 0);
    assert_int_equal(result, 0);
}

/* What is no question ends the door, and nothing else. */
static void test_nonsense(void **state)
{
    (void)state;
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    struct loop *loop = loop_create(NULL);
    assert_int_equal(fd_socketpair(ends), 0);
    struct stack_door *door = stack_door_create(loop, ends[0], NULL);
    ends[0] = -1;
    assert_int_equal(fd_send_all(ends[1], "hello", 5), 0);
    run_turns(loop, 10);
    stack_door_destroy(door);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_user),
        cmocka_unit_test(test_own_rights),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
