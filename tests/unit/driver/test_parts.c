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

static int heard;

static void hear(struct job *job, const struct incident *incident)
{
    (void)job, (void)incident;
    heard++;
}

/* The part may end the ranks at once: others have asked about them before. */
static bool take(struct job *job, const struct incident *incident, void (*done)(void *context),
                 void *context)
{
    (void)job, (void)incident, (void)done, (void)context;
    assert_int_equal(heard, 2);
    return true;
}

static bool refuse(struct job *job, const struct incident *incident, void (*done)(void *context),
                   void *context)
{
    (void)job, (void)incident, (void)done, (void)context;
    fail();
    return false;
}

static void test_all_parts_hear_of_an_incident(void **state)
{
    static const struct driver_part first = {.incident = hear, .takes_incident = take},
                                    last = {.incident = hear, .takes_incident = refuse};
    const struct driver_part *parts[PART_COUNT] = {&first, [PART_COUNT - 1] = &last};
    struct fixture *f = *state;
    const struct incident incident = {.kind = INCIDENT_FAILURE};
    heard = 0;
    f->job.parts = parts;
    assert_true(incident_raise(&f->job, &incident, NULL, NULL));
    assert_int_equal(heard, 2);
    f->job.parts = NULL;
    assert_false(incident_raise(&f->job, &incident, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_signals_are_blocked_before_parts_open, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_all_parts_hear_of_an_incident, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
