/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/loop.h"
#include "loop_fixture.h"
#include "unit.h"

struct fixture {
    struct loop *loop;
    struct loop_timer *timers[3];
    struct loop_fd *watches[2];
    int ends[2], others[2];
    char seen[64]; /* a letter for each callback, in their order */
    size_t count;
    int what;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.loop = loop_create(NULL)};
    *state = &f;
    return f.loop == NULL || fd_pipe(f.ends) < 0 || fd_pipe(f.others) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        loop_timer_destroy(f->timers[i]);
    for (int i = 0; i < 2; i++) {
        loop_fd_destroy(f->watches[i]);
        fd_close(&f->ends[i]);
        fd_close(&f->others[i]);
    }
    loop_destroy(f->loop);
    return 0;
}

static void see(struct fixture *f, char letter)
{
    assert_true(f->count < sizeof(f->seen) - 1);
    f->seen[f->count++] = letter;
}

static void fire_a(void *context)
{
    see(context, 'a');
}

static void fire_b(void *context)
{
    see(context, 'b');
}

static void fire_c_and_stop(void *context)
{
    struct fixture *f = context;
    see(f, 'c');
    loop_stop(f->loop);
}

static void test_timers_in_order(void **state)
{
    struct fixture *f = *state;
    f->timers[0] = loop_timer_create(f->loop, fire_a, f);
    f->timers[1] = loop_timer_create(f->loop, fire_b, f);
    f->timers[2] = loop_timer_create(f->loop, fire_c_and_stop, f);
    loop_timer_set(f->timers[0], 40);
    loop_timer_set(f->timers[1], -5); /* at once */
    loop_timer_set(f->timers[2], 80);
    loop_run(f->loop);
    assert_string_equal(f->seen, "bac");
    assert_false(loop_timer_is_set(f->timers[0])); /* one shot */
}

static void test_timer_set_again_and_cleared(void **state)
{
    struct fixture *f = *state;
    f->timers[0] = loop_timer_create(f->loop, fire_a, f);
    f->timers[1] = loop_timer_create(f->loop, fire_b, f);
    assert_false(loop_timer_is_set(f->timers[0]));
    loop_timer_set(f->timers[0], 0);
    loop_timer_set(f->timers[1], 20);
    assert_true(loop_timer_is_set(f->timers[0]));
    loop_timer_set(f->timers[0], 60); /* moved behind b */
    loop_run(f->loop);                /* returns by itself: nothing is left */
    assert_string_equal(f->seen, "ba");
    loop_timer_set(f->timers[0], 0);
    loop_timer_clear(f->timers[0]);
    assert_false(loop_timer_is_set(f->timers[0]));
    loop_run(f->loop);
    assert_string_equal(f->seen, "ba");
}

static void destroy_both(void *context)
{
    struct fixture *f = context;
    see(f, 'd');
    for (int i = 0; i < 2; i++) { /* itself and the other one, which is due too */
        loop_timer_destroy(f->timers[i]);
        f->timers[i] = NULL;
    }
}

static void test_timers_destroyed_in_a_callback(void **state)
{
    struct fixture *f = *state;
    f->timers[0] = loop_timer_create(f->loop, destroy_both, f);
    f->timers[1] = loop_timer_create(f->loop, destroy_both, f);
    loop_timer_set(f->timers[0], 0);
    loop_timer_set(f->timers[1], 0);
    loop_run(f->loop);
    assert_string_equal(f->seen, "d");
    loop_timer_destroy(NULL);
}

static void defer_last(void *context)
{
    see(context, '4');
}

static void defer_third(void *context)
{
    see(context, '3');
}

static void defer_first(void *context)
{
    struct fixture *f = context;
    see(f, '1');
    loop_defer(f->loop, defer_last, f); /* of the next turn */
}

static void defer_second(void *context)
{
    see(context, '2');
}

static void timer_defers(void *context)
{
    struct fixture *f = context;
    see(f, 't');
    loop_defer(f->loop, defer_first, f);
    loop_defer(f->loop, defer_second, f);
    loop_defer(f->loop, defer_third, f);
}

/* Deferred calls come after the callbacks that are due in this turn, in their order. */
static void test_deferred(void **state)
{
    struct fixture *f = *state;
    f->timers[0] = loop_timer_create(f->loop, timer_defers, f);
    f->timers[1] = loop_timer_create(f->loop, fire_b, f);
    loop_timer_set(f->timers[0], 0);
    loop_timer_set(f->timers[1], 0);
    loop_run(f->loop);
    assert_string_equal(f->seen, "tb1234");
}

static void test_many_deferred_before_the_run(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 30; i++)
        loop_defer(f->loop, i % 2 == 0 ? fire_a : fire_b, f);
    loop_run(f->loop);
    assert_int_equal(f->count, 30);
    for (int i = 0; i < 30; i++)
        assert_int_equal(f->seen[i], i % 2 == 0 ? 'a' : 'b');
    loop_defer(f->loop, fire_a, f); /* never called: freed with the loop */
}

static void note_ready(void *context, int what)
{
    struct fixture *f = context;
    see(f, 'r');
    f->what |= what;
    loop_stop(f->loop);
}

static void test_readable(void **state)
{
    struct fixture *f = *state;
    f->watches[0] = loop_fd_create(f->loop, f->ends[0], note_ready, f);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    run_turns(f->loop, 3); /* created disarmed */
    assert_int_equal(f->count, 0);
    assert_int_equal(loop_fd_watch(f->watches[0], LOOP_READ), 0);
    run_loop(f->loop);
    run_loop(f->loop); /* level-triggered: nobody has read it yet */
    assert_string_equal(f->seen, "rr");
    assert_int_equal(f->what, LOOP_READ);
    loop_fd_watch(f->watches[0], 0);
    run_turns(f->loop, 3);
    assert_int_equal(f->count, 2);
    loop_fd_watch(f->watches[0], LOOP_READ);
    run_loop(f->loop);
    assert_int_equal(f->count, 3);
}

static void test_both_directions(void **state)
{
    struct fixture *f = *state;
    int pair[2];
    assert_int_equal(fd_socketpair(pair), 0);
    f->watches[0] = loop_fd_create(f->loop, pair[0], note_ready, f);
    assert_int_equal(loop_fd_watch(f->watches[0], LOOP_READ | LOOP_WRITE), 0);
    run_loop(f->loop);
    assert_int_equal(f->what, LOOP_WRITE); /* nothing to read yet */
    assert_int_equal(write(pair[1], "x", 1), 1);
    loop_fd_watch(f->watches[0], LOOP_READ);
    f->what = 0;
    run_loop(f->loop);
    assert_int_equal(f->what, LOOP_READ);
    loop_fd_destroy(f->watches[0]);
    f->watches[0] = NULL;
    fd_close(&pair[0]);
    fd_close(&pair[1]);
}

static void test_end_of_file_is_readable(void **state)
{
    struct fixture *f = *state;
    f->watches[0] = loop_fd_create(f->loop, f->ends[0], note_ready, f);
    loop_fd_watch(f->watches[0], LOOP_READ);
    fd_close(&f->ends[1]);
    run_loop(f->loop);
    assert_int_equal(f->what, LOOP_READ);
}

/* A regular file cannot be watched: that is said, and the watch goes on being usable. */
static void test_regular_file(void **state)
{
    struct fixture *f = *state;
    int file AUTO_FD = memfd_create("file", MFD_CLOEXEC);
    f->watches[0] = loop_fd_create(f->loop, file, note_ready, f);
    errno = 0;
    assert_int_equal(loop_fd_watch(f->watches[0], LOOP_READ), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(loop_fd_watch(f->watches[0], LOOP_READ), -1); /* still */
    assert_int_equal(loop_fd_watch(f->watches[0], 0), 0);
    run_turns(f->loop, 3);
    assert_int_equal(f->count, 0);
    errno = ENOTTY;
    loop_fd_destroy(f->watches[0]);
    assert_int_equal(errno, ENOTTY);
    f->watches[0] = NULL;
    loop_fd_destroy(NULL);
}

static void destroy_all_watches(void *context, int what)
{
    (void)what;
    struct fixture *f = context;
    see(f, 'w');
    for (int i = 0; i < 2; i++) {
        loop_fd_destroy(f->watches[i]);
        f->watches[i] = NULL;
    }
}

/* Both are ready in one turn; whoever comes first destroys both. */
static void test_watches_destroyed_in_a_callback(void **state)
{
    struct fixture *f = *state;
    f->watches[0] = loop_fd_create(f->loop, f->ends[0], destroy_all_watches, f);
    f->watches[1] = loop_fd_create(f->loop, f->others[0], destroy_all_watches, f);
    loop_fd_watch(f->watches[0], LOOP_READ);
    loop_fd_watch(f->watches[1], LOOP_READ);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(write(f->others[1], "x", 1), 1);
    loop_run(f->loop);
    assert_string_equal(f->seen, "w");
}

struct heard {
    struct loop *loop;
    struct loop_signals *signals;
    int count, last, sender;
    bool destroy;
};

static void got_signal(void *context, int signal, int sender_pid)
{
    struct heard *heard = context;
    heard->count++;
    heard->last = signal;
    heard->sender = sender_pid;
    if (heard->destroy) {
        loop_signals_destroy(heard->signals);
        heard->signals = NULL;
    }
    loop_stop(heard->loop);
}

static void test_signals(void **state)
{
    struct fixture *f = *state;
    static const int wanted[] = {SIGUSR1, SIGUSR2, 0};
    struct heard heard = {.loop = f->loop};
    heard.signals = loop_signals_create(f->loop, wanted, got_signal, &heard, NULL);
    assert_non_null(heard.signals);
    kill(getpid(), SIGUSR2);
    run_loop(f->loop);
    assert_int_equal(heard.last, SIGUSR2);
    assert_int_equal(heard.sender, getpid());
    pid_t child = fork();
    if (child == 0) {
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    run_loop(f->loop);
    assert_int_equal(heard.last, SIGUSR1);
    assert_int_equal(heard.sender, child);
    waitpid(child, NULL, 0);
    /* two at once, and the first one's callback destroys the object: the second is not handed out,
     * and stays blocked */
    heard.destroy = true;
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    run_loop(f->loop);
    run_turns(f->loop, 3);
    assert_int_equal(heard.count, 3);
    sigset_t pending;
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1) || sigismember(&pending, SIGUSR2));
    loop_signals_destroy(NULL);
}

static void test_time_goes_forward(void **state)
{
    struct fixture *f = *state;
    int64_t before = loop_now_ms(f->loop);
    f->timers[0] = loop_timer_create(f->loop, fire_a, f);
    loop_timer_set(f->timers[0], 30);
    loop_run(f->loop);
    assert_true(loop_now_ms(f->loop) - before >= 29); /* never early; how late is not asked */
}

static void test_destroy_null(void **state)
{
    (void)state;
    loop_destroy(NULL);
}

/* As after Ctrl-Z: what was set before stands where it stood, what is set now counts from now. */
static void test_time_in_which_we_were_stopped(void **state)
{
    struct fixture *f = *state;
    f->timers[0] = loop_timer_create(f->loop, fire_a, f);
    f->timers[1] = loop_timer_create(f->loop, fire_b, f);
    f->timers[2] = loop_timer_create(f->loop, fire_c_and_stop, f);
    loop_timer_set(f->timers[0], 200);
    int64_t since = unit_limit_ms(0);
    usleep(300000);
    loop_stood_still(f->loop, since);
    loop_timer_set(f->timers[1], 20);
    loop_run(f->loop);
    assert_string_equal(f->seen, "ba"); /* c was not set, and is not */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_timers_in_order),
        TEST(test_timer_set_again_and_cleared),
        TEST(test_timers_destroyed_in_a_callback),
        TEST(test_deferred),
        TEST(test_many_deferred_before_the_run),
        TEST(test_readable),
        TEST(test_both_directions),
        TEST(test_end_of_file_is_readable),
        TEST(test_regular_file),
        TEST(test_watches_destroyed_in_a_callback),
        TEST(test_signals),
        TEST(test_time_goes_forward),
        TEST(test_time_in_which_we_were_stopped),
        TEST(test_destroy_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
