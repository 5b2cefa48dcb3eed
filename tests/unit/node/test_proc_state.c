/* SPDX-License-Identifier: Apache-2.0 */
/* What the report of --timeout says about a process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/proc.h"
#include "node/proc_state.h"

static void expect_call(long number, const char *text)
{
    char *call AUTO_FREE = proc_state_call(number);
    assert_string_equal(call, text);
}

static void test_calls_have_names(void **state)
{
    (void)state;
    expect_call(SYS_futex, "calls futex");
    expect_call(SYS_kill, "calls kill");
    expect_call(SYS_sched_yield, "calls sched_yield");
    expect_call(SYS_newfstatat, "calls newfstatat");
    expect_call(9999, "is in system call number 9999");
}

static void expect_doing(const struct proc_facts *facts, bool wait, bool held, const char *text)
{
    bool is_held = !held;
    char *doing AUTO_FREE = proc_state_doing(facts, wait, &is_held);
    assert_string_equal(doing, text);
    assert_int_equal(is_held, held);
}

#define FACTS(...) (&(struct proc_facts){__VA_ARGS__})

static void test_what_a_thread_does(void **state)
{
    (void)state;
    expect_doing(FACTS(.letter = 'R', .call = -1), true, false, "running");
    expect_doing(FACTS(.letter = 'S', .call = SYS_read, .wait = "pipe_read"), true, false,
                 "calls read, waits in pipe_read");
    expect_doing(FACTS(.letter = 'S', .call = SYS_read, .wait = "pipe_read"), false, false,
                 "calls read");
    expect_doing(FACTS(.letter = 'D', .wait = "folio_wait_bit", .call = -1), false, false,
                 "waits in folio_wait_bit");
    expect_doing(FACTS(.letter = 'D', .call = -1), false, false, "in uninterruptible wait");
    expect_doing(FACTS(.letter = 'Z', .call = -1), true, false, "ended, not reaped");
    expect_doing(FACTS(.letter = 'Z', .threads = 2, .call = -1), true, false,
                 "its first thread has ended");
}

/* Somebody else has to do something before it goes on. */
static void test_what_holds_a_thread(void **state)
{
    (void)state;
    expect_doing(FACTS(.letter = 'T', .stop_signal = 19, .wait = "do_signal_stop", .call = -1),
                 true, true, "stopped (SIGSTOP)");
    expect_doing(FACTS(.letter = 'T', .stop_signal = 20, .call = -1), false, true,
                 "stopped (SIGTSTP)");
    expect_doing(FACTS(.letter = 'T', .call = -1), false, true, "stopped");
    expect_doing(FACTS(.letter = 't', .call = -1), false, true, "stopped by a debugger");
    expect_doing(FACTS(.letter = 'S', .call = SYS_read, .frozen = true), true, true,
                 "frozen by a cgroup");
    expect_doing(FACTS(.letter = 'D', .wait = "mem_cgroup_oom_synchronize", .call = -1), true, true,
                 "out of memory in its cgroup");
}

/* After a stop, the kernel says no more which call it was. */
static void test_calls_that_begin_again(void **state)
{
    (void)state;
    const long again = SYS_restart_syscall;
    expect_doing(FACTS(.letter = 'S', .call = again, .wait = "futex_do_wait"), false, false,
                 "calls futex");
    expect_doing(FACTS(.letter = 'S', .call = again, .wait = "poll_schedule_timeout"), false, false,
                 "calls poll");
    expect_doing(FACTS(.letter = 'S', .call = again, .wait = "hrtimer_nanosleep"), false, false,
                 "waits in hrtimer_nanosleep");
    expect_doing(FACTS(.letter = 'S', .call = again), true, false, "sleeping");
}

static void test_own_process(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    struct descendants_table *table = descendants_table_read(1000);
    assert_int_equal(proc_state_report(table, getpid(), 1, &text), 1);
    descendants_table_destroy(table);
    char *begin AUTO_FREE = mem_printf("  pid %d (", (int)getpid());
    assert_memory_equal(buf_text(&text), begin, strlen(begin));
    assert_non_null(strstr(buf_text(&text), "): running"));
}

static void *wait_for_ever(void *none)
{
    while (true)
        pause();
    return none;
}

/* Of a rank that exits, its connections end first. That it ends can be seen by then. */
static void test_processes_that_end(void **state)
{
    (void)state;
    assert_false(proc_state_ends(getpid()));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(proc_state_ends(pid));
    waitpid(pid, NULL, 0);
    assert_false(proc_state_ends(pid));

    pid = fork(); /* its first thread ends, and the other goes on */
    pthread_t thread;
    if (pid == 0 && pthread_create(&thread, NULL, wait_for_ever, NULL) == 0)
        pthread_exit(NULL);
    struct proc_stat stat = {.state = 'R'};
    while (stat.state != 'Z' && proc_read_stat(pid, 0, &stat) == 0)
        usleep(1000);
    assert_false(proc_state_ends(pid));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Refuses to open files, but not folders. */
static int refuse_files(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECTORY, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void test_a_process_that_cannot_be_read(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t *threads = NULL;
        if (refuse_files() < 0)
            _exit(77);
        _exit(proc_threads(getppid(), 100, &threads) > 0 && !proc_state_ends(getppid()) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status == 77 << 8)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_have_names),
        cmocka_unit_test(test_what_a_thread_does),
        cmocka_unit_test(test_what_holds_a_thread),
        cmocka_unit_test(test_calls_that_begin_again),
        cmocka_unit_test(test_own_process),
        cmocka_unit_test(test_processes_that_end),
        cmocka_unit_test(test_a_process_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
