/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread of another process has come back from a call. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "stacks/call_watch.h"

__attribute__((noinline)) static void comes_back(void)
{
    __asm__ volatile("");
}

static uint64_t address_of(void (*function)(void))
{
    uint64_t address = 0;
    memcpy(&address, &function, sizeof(function));
    return address;
}

struct target {
    pid_t pid;
    int to, from; /* a byte: it comes back once, and answers */
};

static struct target start_target(void)
{
    int to[2], from[2];
    void (*volatile function)(void) = comes_back;
    char byte;
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid_t pid = fork();
    if (pid != 0) {
        close(to[0]);
        close(from[1]);
        return (struct target){pid, to[1], from[0]};
    }
    close(to[1]);
    while (read(to[0], &byte, 1) == 1) {
        function();
        if (write(from[1], &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static void come_back(const struct target *target)
{
    char byte = 'x';
    assert_int_equal(write(target->to, &byte, 1), 1);
    assert_int_equal(read(target->from, &byte, 1), 1);
}

static void end_target(const struct target *target)
{
    close(target->to);
    close(target->from);
    waitpid(target->pid, NULL, 0);
}

/* Some kernels and containers do not allow it. */
static uint64_t number_or_skip(struct call_watches *watches, const struct target *target)
{
    uint64_t number =
        call_watches_number(watches, target->pid, target->pid, address_of(comes_back));
    int error = errno;
    if (number == 0 && error != ESRCH) {
        char *text = call_watches_refusal(error);
        assert_non_null(strstr(text, strerror(error)));
        free(text);
        call_watches_destroy(watches);
        end_target(target);
        skip();
    }
    assert_int_not_equal(number, 0);
    return number;
}

static void test_the_number_changes_when_it_comes_back(void **state)
{
    (void)state;
    struct call_watches *watches = call_watches_create();
    const struct target target = start_target();
    const uint64_t address = address_of(comes_back);
    uint64_t first = number_or_skip(watches, &target);
    assert_int_equal(call_watches_number(watches, target.pid, target.pid, address), first);
    assert_int_equal(call_watches_number(watches, target.pid, target.pid, address), first);
    come_back(&target);
    uint64_t second = call_watches_number(watches, target.pid, target.pid, address);
    assert_true(second != 0 && second != first);
    assert_int_equal(call_watches_number(watches, target.pid, target.pid, address), second);
    for (int i = 0; i < 100; i++)
        come_back(&target);
    uint64_t third = call_watches_number(watches, target.pid, target.pid, address);
    assert_true(third != 0 && third != second && third != first);
    /* a call from elsewhere is another one */
    uint64_t other =
        call_watches_number(watches, target.pid, target.pid, address_of((void (*)(void))abort));
    assert_true(other != 0 && other != third);
    assert_int_not_equal(call_watches_number(watches, target.pid, target.pid, address), third);
    assert_int_equal(call_watches_expire(watches), 1); /* it is in use */
    end_target(&target);
    call_watches_destroy(watches);
}

static void test_a_process_that_has_ended(void **state)
{
    (void)state;
    struct call_watches *watches = call_watches_create();
    const struct target target = start_target();
    (void)number_or_skip(watches, &target);
    /* a thread of another process */
    assert_int_equal(call_watches_number(watches, getpid(), target.pid, address_of(comes_back)), 0);
    assert_int_equal(errno, ESRCH);
    end_target(&target);
    assert_int_equal(call_watches_number(watches, target.pid, target.pid, address_of(comes_back)),
                     0);
    assert_int_equal(errno, ESRCH);
    call_watches_destroy(watches);
    call_watches_destroy(NULL);
}

/* As in a container. */
static int refuse(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void test_a_kernel_that_refuses(void **state)
{
    (void)state;
    int status = 0;
    const struct target target = start_target();
    pid_t pid = fork();
    if (pid == 0) {
        struct call_watches *watches = call_watches_create();
        if (refuse() < 0)
            _exit(77);
        bool none =
            call_watches_number(watches, target.pid, target.pid, address_of(comes_back)) == 0;
        _exit(none && errno == EPERM ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    end_target(&target);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void test_why_not(void **state)
{
    (void)state;
    char *text = call_watches_refusal(ENOSYS);
    assert_non_null(strstr(text, "it cannot be seen whether calls of MPI return: "));
    assert_null(strstr(text, "perf_event_paranoid"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_number_changes_when_it_comes_back),
        cmocka_unit_test(test_a_process_that_has_ended),
        cmocka_unit_test(test_a_kernel_that_refuses),
        cmocka_unit_test(test_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
