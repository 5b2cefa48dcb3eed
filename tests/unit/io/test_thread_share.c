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
    int gate[2], over[2]; /* the thread waits for a byte, and sends one at its end */
    bool done, blocks_signals, thread_was_last;
};

static void *run(void *context)
{
    struct work *work = context;
    sigset_t mask;
    char byte;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    bool went_on = fd_read(work->gate[0], &byte, 1) == 1;
    thread_share_lock(&work->share);
    work->blocks_signals = sigismember(&mask, SIGTERM) == 1;
    work->done = went_on;
    pthread_cond_signal(&work->share.changed);
    int over = work->over[1];
    work->thread_was_last = thread_share_leave(&work->share);
    (void)!fd_write(over, "", 1);
    return NULL;
}

static void begin(struct work *work)
{
    *work = (struct work){.done = false};
    assert_int_equal(fd_pipe(work->gate), 0);
    assert_int_equal(fd_pipe(work->over), 0);
    thread_share_init(&work->share);
    assert_int_equal(thread_share_start(&work->share, "test", run, work), 0);
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
    begin(&work);
    thread_share_lock(&work.share);
    while (thread_share_wait(&work.share, 0)) {
    }
    assert_false(work.done);
    thread_share_unlock(&work.share);
    let_go(&work);
    thread_share_lock(&work.share);
    while (!work.done && thread_share_wait(&work.share, unit_limit_ms(60000))) {
    }
    assert_true(work.done);
    assert_true(work.blocks_signals);
    thread_share_unlock(&work.share);
    end(&work);
    thread_share_lock(&work.share);
    assert_true(thread_share_leave(&work.share));
    assert_false(work.thread_was_last);
}

static void test_the_owner_leaves_first(void **state)
{
    (void)state;
    struct work work;
    begin(&work);
    thread_share_lock(&work.share);
    assert_false(thread_share_leave(&work.share));
    let_go(&work);
    end(&work);
    assert_true(work.thread_was_last);
}

static void test_a_wait_that_is_over(void **state)
{
    (void)state;
    struct thread_share share;
    thread_share_init(&share);
    thread_share_lock(&share);
    assert_false(thread_share_wait(&share, 0));
    assert_true(thread_share_leave(&share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_owner_waits),
        cmocka_unit_test(test_the_owner_leaves_first),
        cmocka_unit_test(test_a_wait_that_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
