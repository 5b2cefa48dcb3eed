/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "job_fixture.h"

static int probes;

static int probe(struct job *job, struct error *err)
{
    sigset_t blocked;
    (void)job, (void)err;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    assert_true(sigismember(&blocked, SIGINT));
    assert_true(sigismember(&blocked, SIGTERM));
    probes++;
    return 0;
}

/* Else a Ctrl-C while a part opens would kill hvdrun, whatever that part has begun. Other parts
 * than the watch, and those that it needs, only look whether signals are blocked. */
static void test_signals_are_blocked_before_parts_open(void **state)
{
    static const struct driver_part *parts[PART_COUNT], probing = {.open = probe};
    static const int ends[] = {SIGINT, SIGTERM};
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct sigaction usual = {.sa_handler = SIG_DFL}, before[2];
    sigset_t none, mask;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, &mask);
    for (int i = 0; i < 2; i++)
        sigaction(ends[i], &usual, &before[i]);
    for (int i = 0; i < PART_COUNT; i++)
        parts[i] = &probing;
    parts[PART_helpers] = driver_parts[PART_helpers];
    parts[PART_warning] = driver_parts[PART_warning];
    parts[PART_user_signals] = driver_parts[PART_user_signals];
    f->job.parts = parts;
    assert_int_equal(parts_open(&f->job, &err), 0);
    assert_int_equal(probes, PART_COUNT - 3);
    parts_close(&f->job);
    for (int i = 0; i < 2; i++)
        sigaction(ends[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_signals_are_blocked_before_parts_open, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
