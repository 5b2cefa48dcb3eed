/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/stalls.h"
#include "driver/tell/tell.h"
#include "unit.h"

/* The parts of --report that other tests do not read as a whole. */

static json_t *part(struct fixture *f, const char *key)
{
    exit_policy_verdict(f->policy, &f->job.verdict);
    json_t *root = report_object(&f->job, true);
    json_t *value = json_incref(json_object_get(root, key));
    json_decref(root);
    return value;
}

static void test_rank(void **state)
{
    struct fixture *f = *state;
    exits(f, 1, false, 3, 7 * SECOND);
    struct rank_record *record = &f->job.ranks.records[1];
    record->user_us = 1500000;
    record->system_us = 2250000;
    record->max_rss_kb = 4096;
    record->oom = true;
    record->text = mem_strdup("ValueError");
    json_t *ranks = part(f, "ranks");
    expect_json(json_incref(json_array_get(ranks, 1)),
                "{'rank': 1, 'host': 'a', 'local_rank': 1, 'app': 0, 'pid': 101,"
                " 'state': 'finished', 'started': 1700000004.0, 'ended': 1700000006.0,"
                " 'last_output': null, 'exit_code': 3, 'signal': null, 'signal_by': null, "
                "'core_dumped': false, 'out_of_memory': true,"
                " 'output_cut': false, 'user_seconds': 1.5, 'system_seconds': 2.25,"
                " 'max_rss_kib': 4096, 'text': 'ValueError', 'role': 'cause'}");
    json_decref(ranks);
}

static void test_nodes(void **state)
{
    struct fixture *f = *state;
    Hvdrun__AgentHello *hello = mem_alloc(sizeof(*hello));
    hvdrun__agent_hello__init(hello);
    hello->hostname = mem_strdup("node-a");
    hello->pid = 4711;
    hello->cpus_allowed = 12;
    f->job.nodes[0]->hello = hello;
    f->job.nodes[0]->state = NODE_RUNNING;
    f->job.nodes[1]->place = -1;
    expect_json(part(f, "nodes"),
                "[{'host': 'a', 'local_size': 2, 'state': 'running', 'hostname': 'node-a',"
                "  'agent_pid': 4711, 'cpus': 12},"
                " {'host': 'b', 'local_size': 0, 'state': 'calling', 'hostname': null,"
                "  'agent_pid': null, 'cpus': null}]");
}

static void test_cause(void **state)
{
    struct fixture *f = *state;
    exits(f, 2, false, 3, 7 * SECOND);
    json_t *job = part(f, "job");
    expect_json(json_incref(json_object_get(job, "cause")),
                "{'kind': 'exit', 'rank': 2, 'host': 'b', 'tie': false, 'likely': false,"
                " 'first_rank': null, 'text': 'rank 2 exited with code 3'}");
    json_decref(job);
}

static void test_scheduler(void **state)
{
    struct fixture *f = *state;
    expect_json(part(f, "scheduler"), "null");
    struct allocation allocation = {.kind = ALLOCATION_NONE};
    f->request.allocation = &allocation;
    expect_json(part(f, "scheduler"), "null");
    allocation = (struct allocation){
        .kind = ALLOCATION_SLURM, .job_id = (char *)"814", .restart_count = 2, .end_s = 1700003600};
    expect_json(part(f, "scheduler"), "{'name': 'Slurm', 'job_id': '814', 'restart_count': 2,"
                                      " 'end_time': 1700003600}");
    allocation.end_s = 0;
    json_t *scheduler = part(f, "scheduler");
    assert_true(json_is_null(json_object_get(scheduler, "end_time")));
    json_decref(scheduler);
}

static struct stall_ranks ranks(int first, int count, bool more)
{
    struct stall_ranks list = {mem_array((size_t)count, sizeof(int)), count, more};
    for (int i = 0; i < count; i++)
        list.list[i] = first + i;
    return list;
}

static void add_stall(struct fixture *f, const char *name, bool more)
{
    struct stall stall = {.rank = 1,
                          .seat = 1,
                          .set = 2,
                          .seconds = 60,
                          .others = 3,
                          .operation = mem_strdup("allreduce"),
                          .name = mem_strdup(name),
                          .waiting = ranks(0, 2, false),
                          .missing = ranks(2, 1, more),
                          .since_ns = 1700000000 * SECOND,
                          .reported_ns = 7 * SECOND};
    stall_list_add(job_part(&f->job, stall_list), &stall);
}

static void test_stalls(void **state)
{
    struct fixture *f = *state;
    f->job.own[PART_stall_list] = stall_list_create();
    add_stall(f, "x", false);
    stall_list_over(job_part(&f->job, stall_list), 1, 2);
    add_stall(f, "y", true);
    expect_json(part(f, "stalls"),
                "[{'time': 1700000000.0, 'reported_by': 1, 'process_set': 2,"
                "  'operation': 'allreduce', 'name': 'x', 'seconds': 60, 'others': 3,"
                "  'waiting': [0, 1], 'missing': [2], 'more_ranks': false, 'over': true},"
                " {'time': 1700000000.0, 'reported_by': 1, 'process_set': 2,"
                "  'operation': 'allreduce', 'name': 'y', 'seconds': 60, 'others': 3,"
                "  'waiting': [0, 1], 'missing': [2], 'more_ranks': true, 'over': false}]");
    int64_t too_old_ns = (7 + 2 * 60 + 2) * SECOND; /* two reports are missing */
    unit_clock_stop(too_old_ns - 1, 0);
    json_t *now = report_stalls_now(&f->job);
    assert_int_equal(json_array_size(now), 1);
    json_decref(now);
    unit_clock_stop(too_old_ns, 0);
    expect_json(report_stalls_now(&f->job), "[]");
    unit_clock_run();
    stall_list_destroy(job_part(&f->job, stall_list));
    f->job.own[PART_stall_list] = NULL;
}

/* The name of the event's row; its stages last until the next one in time begins. */
static void test_rows_of_the_trace(void **state)
{
    struct fixture *f = *state;
    int rows = 0;
    char *text AUTO_FREE = report_trace(&f->job);
    json_t *root = json_loads(text, 0, NULL), *event;
    size_t i;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        static const char *const names[] = {"hvdrun", "a", "b"};
        if (strcmp(json_string_value(json_object_get(event, "name")), "process_name") != 0)
            continue;
        assert_true(rows < 3);
        assert_int_equal(json_integer_value(json_object_get(event, "pid")), rows);
        const json_t *name = json_object_get(json_object_get(event, "args"), "name");
        assert_string_equal(json_string_value(name), names[rows++]);
    }
    assert_int_equal(rows, 3);
    json_decref(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rank),      TEST(test_nodes),  TEST(test_cause),
        TEST(test_scheduler), TEST(test_stalls), TEST(test_rows_of_the_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
