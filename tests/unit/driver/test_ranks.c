/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "driver/job/ranks.h"

static void counts(const struct rank_table *table, int running, int exited, int finished)
{
    assert_int_equal(table->running, running);
    assert_int_equal(table->exited, exited);
    assert_int_equal(table->finished, finished);
}

static void test_a_life(void **state)
{
    (void)state;
    struct rank_table table;
    rank_table_init(&table, 3);
    assert_int_equal(table.records[1].state, RANK_PLANNED);
    counts(&table, 0, 0, 0);
    assert_true(rank_started(&table, 1, 4711, 1000));
    counts(&table, 1, 0, 0);
    assert_int_equal(table.records[1].pid, 4711);
    assert_int_equal(table.records[1].started_ns, 1000);
    assert_true(rank_exited(&table, 1, 2000));
    counts(&table, 0, 1, 0);
    assert_int_equal(table.records[1].ended_ns, 2000);
    assert_true(rank_finished(&table, 1));
    counts(&table, 0, 1, 1);
    assert_int_equal(table.records[0].state, RANK_PLANNED); /* the others are as they were */
    assert_int_equal(table.records[2].state, RANK_PLANNED);
    table.records[1].text = mem_strdup("freed with the table");
    rank_table_destroy(&table);
    rank_table_destroy(&table);
}

/* A program that could not be executed never ran: it exits from where it was planned. */
static void test_never_ran(void **state)
{
    (void)state;
    struct rank_table table;
    rank_table_init(&table, 1);
    assert_true(rank_exited(&table, 0, 5));
    counts(&table, 0, 1, 0);
    assert_int_equal(table.records[0].pid, 0);
    assert_true(rank_finished(&table, 0));
    counts(&table, 0, 1, 1);
    rank_table_destroy(&table);
}

/* Every event in every state: only the one that fits changes anything. */
static void test_repeated_and_late_news(void **state)
{
    (void)state;
    for (int before = RANK_PLANNED; before <= RANK_FINISHED; before++) {
        for (int event = 0; event < 3; event++) {
            struct rank_table table;
            rank_table_init(&table, 1);
            if (before >= RANK_RUNNING)
                rank_started(&table, 0, 1, 10);
            if (before >= RANK_EXITED)
                rank_exited(&table, 0, 20);
            if (before >= RANK_FINISHED)
                rank_finished(&table, 0);
            bool fits = event == 0   ? before == RANK_PLANNED
                        : event == 1 ? before <= RANK_RUNNING
                                     : before == RANK_EXITED;
            struct rank_table copy = table;
            struct rank_record record = table.records[0];
            bool taken = event == 0   ? rank_started(&table, 0, 2, 30)
                         : event == 1 ? rank_exited(&table, 0, 30)
                                      : rank_finished(&table, 0);
            assert_int_equal(taken, fits);
            if (!fits) {
                assert_memory_equal(&table, &copy, sizeof(table));
                assert_memory_equal(&table.records[0], &record, sizeof(record));
            }
            rank_table_destroy(&table);
        }
    }
}

static void test_no_such_rank(void **state)
{
    (void)state;
    struct rank_table table;
    rank_table_init(&table, 2);
    static const int ranks[] = {-1, 2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < 4; i++) {
        assert_false(rank_started(&table, ranks[i], 1, 1));
        assert_false(rank_exited(&table, ranks[i], 1));
        assert_false(rank_finished(&table, ranks[i]));
    }
    counts(&table, 0, 0, 0);
    rank_table_destroy(&table);
}

/* Two ranks of the first world, two and one of others. */
static void test_a_world_is_over(void **state)
{
    (void)state;
    struct rank_table table;
    static const int worlds[] = {0, 0, 1, 1, 2};
    rank_table_init(&table, 5);
    for (int seat = 0; seat < 5; seat++)
        table.records[seat].world = worlds[seat];
    for (int seat = 0; seat < 5; seat++) {
        assert_false(rank_world_is_over(&table, seat));
        rank_started(&table, seat, 1, 1);
        rank_exited(&table, seat, 2);
        assert_false(rank_world_is_over(&table, seat));
        rank_finished(&table, seat);
        assert_int_equal(rank_world_is_over(&table, seat), seat == 3 || seat == 4);
    }
    assert_true(rank_world_is_over(&table, 2));
    assert_false(rank_world_is_over(&table, 1)); /* the first world stays until the end */
    rank_table_destroy(&table);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(rank_state_name(RANK_PLANNED), "not started");
    assert_string_equal(rank_state_name(RANK_RUNNING), "running");
    assert_string_equal(rank_state_name(RANK_EXITED), "exited");
    assert_string_equal(rank_state_name(RANK_FINISHED), "finished");
}

/* A seat is taken again, in whatever state it was: it is counted as planned. */
static void test_a_seat_is_taken_again(void **state)
{
    (void)state;
    for (int before = RANK_PLANNED; before <= RANK_FINISHED; before++) {
        struct rank_table table;
        rank_table_init(&table, 2);
        assert_int_equal(table.left_mpi, -1);
        table.left_mpi = 0;
        rank_started(&table, 1, 1, 10);
        rank_exited(&table, 1, 20);
        rank_finished(&table, 1);
        if (before >= RANK_RUNNING)
            rank_started(&table, 0, 1, 10);
        if (before >= RANK_EXITED)
            rank_exited(&table, 0, 20);
        if (before >= RANK_FINISHED)
            rank_finished(&table, 0);
        assert_ptr_equal(rank_table_seat(&table, 0), &table.records[0]);
        assert_int_equal(table.records[0].state, RANK_PLANNED);
        counts(&table, 0, 1, 1);
        assert_int_equal(table.left_mpi, -1); /* it was another worker */
        table.left_mpi = 1;
        rank_table_seat(&table, 4);
        assert_int_equal(table.left_mpi, 1);
        assert_int_equal(table.size, 5);
        for (int seat = 2; seat < 5; seat++)
            assert_int_equal(table.records[seat].state, RANK_PLANNED);
        counts(&table, 0, 1, 1);
        rank_table_destroy(&table);
    }
}

static void seat(struct rank_table *table, int number, int node, uint32_t epoch)
{
    struct rank_record *record = rank_table_seat(table, number);
    record->node = node;
    record->epoch = epoch;
}

/* Newcomers belong to a later epoch than the members; seats of others, or of nobody, stay. */
static void test_the_unstarted_of_a_node_end(void **state)
{
    (void)state;
    struct rank_table table;
    int *seats = NULL;
    rank_table_init(&table, 0);
    seat(&table, 0, 0, 3);
    rank_started(&table, 0, 4711, 10);
    seat(&table, 1, 0, 3);
    seat(&table, 2, 1, 3);
    seat(&table, 4, 0, 4); /* seat 3 was kept for a worker that was never to start */
    assert_int_equal(rank_end_unstarted(&table, 0, SIGTERM, 77, &seats), 2);
    assert_int_equal(seats[0], 1);
    assert_int_equal(seats[1], 4);
    free(seats);
    counts(&table, 1, 2, 2);
    for (int number = 1; number < 5; number += 3) {
        const struct rank_record *record = &table.records[number];
        assert_int_equal(record->state, RANK_FINISHED);
        assert_true(record->signaled);
        assert_int_equal(record->code, SIGTERM);
        assert_true(record->ended_by_us);
        assert_int_equal(record->ended_ns, 77);
        assert_int_equal(record->pid, 0);
    }
    assert_int_equal(table.records[0].state, RANK_RUNNING);
    assert_int_equal(table.records[2].state, RANK_PLANNED);
    assert_int_equal(table.records[3].state, RANK_PLANNED);
    assert_int_equal(rank_end_unstarted(&table, 0, SIGTERM, 78, &seats), 0);
    free(seats);
    rank_table_destroy(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_life),
        cmocka_unit_test(test_never_ran),
        cmocka_unit_test(test_repeated_and_late_news),
        cmocka_unit_test(test_no_such_rank),
        cmocka_unit_test(test_a_world_is_over),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_seat_is_taken_again),
        cmocka_unit_test(test_the_unstarted_of_a_node_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
