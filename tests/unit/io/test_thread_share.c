/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/threads.h"
#include "unit.h"

struct work {
    struct thread_share share;
    int gate[2], over[2]; /* the thread waits for a byte; the last one that leaves sends one */
    bool went_on, blocks_signals, saw_owner_leave;
    pthread_t freed_by;
};

static void run(struct thread_share *share)
{
    struct work *work = (struct work *)share;
    sigset_t mask;
    char byte;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    work->went_on = fd_read(work->gate[0], &byte, 1) == 1;
    work->blocks_signals = sigismember(&mask, SIGTERM) == 1;
    thread_share_lock(share);
    work->saw_owner_leave = thread_share_is_left(share);
    thread_share_unlock(share);
}

static void wait_for_the_owner(struct thread_share *share)
{
    struct work *work = (struct work *)share;
    thread_share_lock(share);
    while (!thread_share_is_left(share) && thread_share_wait(share, unit_limit_ms(60000))) {
    }
    work->saw_owner_leave = thread_share_is_left(share);
    thread_share_unlock(share);
}

static void free_all(struct thread_share *all)
{
    struct work *work = (struct work *)all;
    work->freed_by = pthread_self();
    (void)!fd_write(work->over[1], "", 1);
}

static void begin(struct work *work, void (*what)(struct thread_share *share))
{
    *work = (struct work){.went_on = false};
    assert_int_equal(fd_pipe(work->gate), 0);
    assert_int_equal(fd_pipe(work->over), 0);
    assert_int_equal(thread_share_start(&work->share, "test", what, free_all), 0);
}

static void let_go(struct work *work)
{
    assert_int_equal(fd_write(work->gate[1], "", 1), 1);
}

static void end(struct work *work)
{
    char byte;
    assert_int_equal(fd_read(work->over[0], &byte, 1), 1);
    for (int i = 0; i < 2; i++) {
        fd_close(&work->gate[i]);
        fd_close(&work->over[i]);
    }
}

static void test_the_owner_waits(void **state)
{
    (void)state;
    struct work work;
    begin(&work, run);
    assert_false(thread_share_is_over(&work.share, 0));
    let_go(&work);
    assert_true(thread_share_is_over(&work.share, unit_limit_ms(60000)));
    assert_true(work.went_on);
    assert_true(work.blocks_signals);
    assert_false(work.saw_owner_leave);
    thread_share_leave(&work.share);
    end(&work);
}

static void test_the_owner_leaves_first(void **state)
{
    (void)state;
    struct work work;
    begin(&work, run);
    thread_share_leave(&work.share);
    let_go(&work);
    end(&work);
    assert_false(pthread_equal(work.freed_by, pthread_self()));
    assert_true(work.saw_owner_leave);
}

static void test_the_thread_hears_that_the_owner_leaves(void **state)
{
    (void)state;
    struct work work;
    begin(&work, wait_for_the_owner);
    thread_share_leave(&work.share);
    end(&work);
    assert_true(work.saw_owner_leave);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_owner_waits),
        cmocka_unit_test(test_the_owner_leaves_first),
        cmocka_unit_test(test_the_thread_hears_that_the_owner_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
