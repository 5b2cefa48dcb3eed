/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper above an agent that is played: its deadlines, and that nothing is left below it. Each
 * keeper is a child of the test, which is a subreaper: what a keeper left would become its child.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/keeper.h"
#include "agent/room_test.h"
#include "base/fd.h"

/* What the agent does once it has started a worker and a daemon. */
struct play {
    int report_fd; /* the pids: agent, daemon */
    int stream_fd;
    bool silent, ends, leaves, heeds_term;
    int64_t silence_ms, grace_ms;
};

struct kept {
    pid_t keeper, agent, daemon;
    int stream; /* our end */
};

static void stay(void)
{
    for (;;)
        pause();
}

static pid_t start_daemon(void)
{
    int ends[2];
    pid_t pid = 0;
    if (pipe(ends) < 0)
        _exit(99);
    if (fork() == 0) {
        setsid();
        pid_t daemon = fork();
        if (daemon == 0) {
            for (int number = 1; number < SIGRTMIN; number++)
                signal(number, SIG_IGN);
            stay();
        }
        _exit(write(ends[1], &daemon, sizeof(daemon)) != sizeof(daemon));
    }
    if (read(ends[0], &pid, sizeof(pid)) != sizeof(pid))
        _exit(99);
    return pid;
}

static void keeper_is_lost(void *context)
{
    (void)context;
    _exit(99);
}

/* At SIGUSR1, as an agent does it whose job is over. */
static void leave(int line_fd, const sigset_t *awaited)
{
    struct error err = ERROR_INIT;
    int signal;
    struct loop *loop = loop_create(&err);
    struct keeper_line *line = keeper_line_create(loop, line_fd, keeper_is_lost, NULL);
    sigwait(awaited, &signal);
    keeper_line_destroy(line);
    _exit(7);
}

static int play_agent(void *context, int line_fd)
{
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    const struct play *play = context;
    struct keeper_beat beat = {play->silence_ms, play->grace_ms};
    if (fork() == 0)
        stay();
    pid_t pids[2] = {getpid(), start_daemon()};
    if (play->heeds_term) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_IGN);
    }
    send(line_fd, &beat, sizeof(beat), 0);
    if (write(play->report_fd, pids, sizeof(pids)) != sizeof(pids))
        _exit(99);
    if (play->ends)
        _exit(7);
    if (play->leaves)
        leave(line_fd, &awaited);
    while (!play->silent) {
        send(line_fd, &beat, sizeof(beat), MSG_DONTWAIT | MSG_NOSIGNAL);
        usleep(100000);
    }
    stay();
    return 0;
}

static struct kept keep(struct play *play)
{
    struct kept kept;
    int stream[2], report[2];
    pid_t pids[2];
    assert_int_equal(fd_socketpair(stream), 0);
    assert_int_equal(fd_pipe(report), 0);
    play->report_fd = report[1];
    kept.keeper = fork();
    assert_true(kept.keeper >= 0);
    if (kept.keeper == 0) {
        sigset_t mask;
        struct error err = ERROR_INIT;
        sigprocmask(SIG_SETMASK, NULL, &mask);
        close(stream[0]);
        close(report[0]);
        struct keeper_config config = {.stream_fd = dup(stream[1]),
                                       .agent_fds = {stream[1], -1},
                                       .mask = &mask,
                                       .agent = play_agent,
                                       .context = play};
        _exit(keeper_run(&config, &err));
    }
    close(stream[1]);
    close(report[1]);
    assert_int_equal(read(report[0], pids, sizeof(pids)), sizeof(pids));
    close(report[0]);
    kept.agent = pids[0];
    kept.daemon = pids[1];
    kept.stream = stream[0];
    return kept;
}

/* The keeper's exit status, after which nobody may be left. */
static int end(struct kept *kept)
{
    int wait_status;
    char byte;
    assert_int_equal(waitpid(kept->keeper, &wait_status, 0), kept->keeper);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child at all */
    assert_int_equal(kill(kept->agent, 0), -1);
    assert_int_equal(kill(kept->daemon, 0), -1);
    assert_int_equal(read(kept->stream, &byte, 1), 0);
    close(kept->stream);
    return WEXITSTATUS(wait_status);
}

static void test_agent_ends(void **state)
{
    (void)state;
    struct play play = {.ends = true, .silence_ms = 60000, .grace_ms = 60000};
    struct kept kept = keep(&play);
    assert_int_equal(end(&kept), 7);
}

static void test_agent_killed(void **state)
{
    (void)state;
    struct play play = {.silence_ms = 60000, .grace_ms = 60000};
    struct kept kept = keep(&play);
    kill(kept.agent, SIGKILL);
    assert_int_equal(end(&kept), 128 + SIGKILL);
}

static void test_agent_stopped(void **state)
{
    (void)state;
    struct play play = {.silence_ms = 100, .grace_ms = 100};
    struct kept kept = keep(&play);
    kill(kept.agent, SIGSTOP);
    assert_int_equal(end(&kept), 128 + SIGKILL);
}

static void test_hung_up_and_agent_hangs(void **state)
{
    (void)state;
    struct play play = {.silence_ms = 60000, .grace_ms = 100};
    struct kept kept = keep(&play);
    assert_int_equal(shutdown(kept.stream, SHUT_WR), 0);
    assert_int_equal(end(&kept), 128 + SIGKILL);
}

/* A second beyond the silence that it may keep: it beats all the time. */
static void test_beats_keep_it_alive(void **state)
{
    (void)state;
    struct play play = {.silence_ms = -KEEPER_MARGIN_MS, .grace_ms = 600};
    struct kept kept = keep(&play);
    usleep(1500000);
    assert_int_equal(kill(kept.agent, 0), 0);
    assert_int_equal(waitpid(kept.keeper, NULL, WNOHANG), 0);
    kill(kept.agent, SIGKILL);
    assert_int_equal(end(&kept), 128 + SIGKILL);
}

static void test_signals_are_passed_on(void **state)
{
    (void)state;
    struct play play = {.heeds_term = true, .silence_ms = 60000, .grace_ms = 60000};
    struct kept kept = keep(&play);
    kill(kept.keeper, SIGHUP); /* which this agent ignores */
    kill(kept.keeper, SIGTERM);
    assert_int_equal(end(&kept), 128 + SIGTERM);
}

/* A keeper that was stopped must not take its own silence for the agent's. */
static void test_stalled_keeper_starts_over(void **state)
{
    (void)state;
    struct play play = {.silent = true, .silence_ms = -KEEPER_MARGIN_MS, .grace_ms = 4000};
    struct kept kept = keep(&play);
    kill(kept.keeper, SIGSTOP);
    usleep(4500000);
    kill(kept.keeper, SIGCONT);
    usleep(500000);
    assert_int_equal(waitpid(kept.keeper, NULL, WNOHANG), 0);
    assert_int_equal(kill(kept.agent, 0), 0);
    assert_int_equal(end(&kept), 128 + SIGKILL); /* and then it is as strict as ever */
}

/* Someone has stopped the keeper: who else would end it after the job? */
static void test_stopped_keeper_ends_with_its_agent(void **state)
{
    (void)state;
    struct play play = {.leaves = true, .silence_ms = 60000, .grace_ms = 60000};
    struct kept kept = keep(&play);
    int wait_status;
    kill(kept.keeper, SIGSTOP);
    assert_int_equal(waitpid(kept.keeper, &wait_status, WUNTRACED), kept.keeper);
    assert_true(WIFSTOPPED(wait_status));
    kill(kept.agent, SIGUSR1);
    bool over = false;
    for (int i = 0; i < 2000 && !over; i++) {
        siginfo_t info = {.si_pid = 0};
        waitid(P_PID, (id_t)kept.keeper, &info, WEXITED | WNOHANG | WNOWAIT);
        over = info.si_pid == kept.keeper;
        usleep(over ? 0 : 5000);
    }
    if (!over)
        kill(kept.keeper, SIGCONT); /* it may not outlive this test */
    assert_int_equal(end(&kept), 7);
    assert_true(over);
}

int main(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_ends),
        cmocka_unit_test(test_agent_killed),
        cmocka_unit_test(test_agent_stopped),
        cmocka_unit_test(test_hung_up_and_agent_hangs),
        cmocka_unit_test(test_beats_keep_it_alive),
        cmocka_unit_test(test_signals_are_passed_on),
        cmocka_unit_test(test_stalled_keeper_starts_over),
        cmocka_unit_test(test_stopped_keeper_ends_with_its_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
