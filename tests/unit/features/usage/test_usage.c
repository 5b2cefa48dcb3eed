/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent measures when its driver asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/fake_driver.h"

#define READ_BYTES "1000000"
/* A child, one in a session of its own, and an orphan in the session of the worker. */
#define FAMILY "sleep 60 & setsid sleep 60 & (sleep 60 &); "
#define WORK                                        \
    "head -c " READ_BYTES " /dev/zero >/dev/null; " \
    "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; "

/* `epoch`: the agent's newest. */
static Hvdrun__Usage *sample(struct fake_driver *driver, uint32_t epoch)
{
    fake_ask(driver, &topic_usage, 7, NULL);
    return (Hvdrun__Usage *)fake_answer(driver, &topic_usage, 7, epoch, false);
}

static void test_a_worker_and_its_processes(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {
        .script = FAMILY WORK "echo up; wait", .seats = {{0, 0, 0, 0}, {1, 1, 1, 1}}, .count = 2};
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:up");
    fake_read(&driver, "1.1:up");
    uint64_t cpu_us[2] = {0, 0};
    for (int round = 0; round < 3; round++) {
        Hvdrun__Usage *message = sample(&driver, 1);
        assert_int_equal(message->n_ranks, 2);
        for (size_t i = 0; i < 2; i++) {
            const Hvdrun__RankUsage *rank = message->ranks[i];
            assert_in_range(rank->seat, 0, 1);
            assert_int_equal(rank->processes, 4);
            assert_int_equal(rank->threads, 4);
            assert_true(rank->resident_bytes > 4 * 4096);
            assert_true(rank->cpu_us > 0 && rank->cpu_us >= cpu_us[rank->seat]);
            assert_true(!rank->has_io || rank->read_bytes >= strtoull(READ_BYTES, NULL, 10));
            assert_true(rank->when_ns > 0);
            cpu_us[rank->seat] = rank->cpu_us;
        }
        assert_true(message->ranks[0]->seat != message->ranks[1]->seat);
        assert_non_null(message->host);
        assert_true(message->host->memory_bytes > message->host->memory_available_bytes);
        assert_true(message->host->has_load);
        hvdrun__usage__free_unpacked(message, NULL);
    }
    fake_end(&driver, 1, SIGTERM);
    Hvdrun__Usage *after = sample(&driver, 1);
    assert_int_equal(after->n_ranks, 0);
    hvdrun__usage__free_unpacked(after, NULL);
    fake_quit(&driver);
}

/* The list of processes is older than the second crew. */
static void test_workers_that_come_later(void **state)
{
    (void)state;
    struct fake_driver driver;
    struct crew_plan plan = {.script = "echo up; sleep 60", .seats = {{0, 0, 0, 0}}, .count = 1};
    fake_open(&driver);
    hvdrun__usage__free_unpacked(sample(&driver, 0), NULL); /* before there is any */
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:up");
    Hvdrun__Usage *message = sample(&driver, 1);
    assert_int_equal(message->n_ranks, 1);
    assert_int_equal(message->ranks[0]->seat, 0);
    hvdrun__usage__free_unpacked(message, NULL);
    fake_end(&driver, 1, SIGKILL);
    plan.seats[0].seat = 7;
    fake_run(&driver, 2, &plan);
    fake_read(&driver, "2.7:up");
    message = sample(&driver, 2);
    assert_int_equal(message->n_ranks, 1);
    assert_int_equal(message->ranks[0]->seat, 7);
    hvdrun__usage__free_unpacked(message, NULL);
    fake_end(&driver, 2, SIGKILL);
    fake_quit(&driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_and_its_processes),
        cmocka_unit_test(test_workers_that_come_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
