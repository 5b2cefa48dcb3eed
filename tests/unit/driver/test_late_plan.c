/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/end/teardown.h"
#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "driver/start/start_test.h"

/* The fixture's job, whose plan is made again: `late` are its hosts, as the user gave them. */
struct late {
    struct fixture *f;
    struct host_list hosts;
    struct plan_request request;
    struct plan *plan;
};

static int open_late(void **state)
{
    static struct late late;
    if (setup(state) < 0)
        return -1;
    late = (struct late){.f = *state};
    late.request = (struct plan_request){.hosts = &late.hosts, .apps = &late.f->apps};
    late.f->request.late = &late.request;
    part_open(&late.f->job, PART_teardown, &teardown_part, NULL);
    for (int i = 0; i < late.f->job.node_count; i++)
        late.f->job.nodes[i]->state = NODE_UP;
    *state = &late;
    return 0;
}

static int close_late(void **state)
{
    struct late *late = *state;
    void *fixture = late->f;
    hosts_destroy(&late->hosts);
    plan_destroy(late->plan);
    part_close(&late->f->job, PART_teardown, &teardown_part);
    exit_outside_clear(&late->f->job.outside);
    return teardown(&fixture);
}

/* The agent of node `i` has said how many GPUs it has. */
static void has_gpus(struct late *late, int i, unsigned gpus)
{
    Hvdrun__AgentHello *hello = mem_alloc(sizeof(*hello));
    hvdrun__agent_hello__init(hello);
    hello->gpus = gpus;
    late->f->job.nodes[i]->hello = hello;
}

static struct host *add_host(struct late *late, const char *name, int slots, bool given)
{
    struct host *host = hosts_add(&late->hosts, name, slots, given);
    host->slots_given = given;
    return host;
}

static void test_slots_of_gpus(void **state)
{
    struct late *late = *state;
    struct job *job = &late->f->job;
    has_gpus(late, 0, 1);
    has_gpus(late, 1, 2);
    add_host(late, "b", 1, false); /* its ranks come first now */
    add_host(late, "a", 1, false);
    assert_int_equal(late_plan_take(job, &late->plan), 0);
    assert_ptr_equal(job->plan, late->plan);
    assert_int_equal(job->plan->size, 3);
    assert_int_equal(job->plan->node_count, 2);
    assert_string_equal(job->plan->nodes[0].name, "b");
    assert_int_equal(job->plan->nodes[0].local_size, 2);
    assert_int_equal(job->nodes[1]->place, 0);
    assert_int_equal(job->nodes[0]->place, 1);
    assert_int_equal(job->ranks.records[2].node, 0);
    assert_int_equal(job->ranks.records[1].node, 1);
    assert_int_equal(job->ranks.records[1].local_rank, 1);
    assert_string_equal(buf_text(&late->f->said),
                        "b: 2 slots, one for each GPU\na: 1 slot, one for each GPU\n");
    output_bytes(job->output, 2, OUTPUT_STDOUT, "x\n", 2, 0);
    char *out AUTO_FREE = printed(late->f);
    assert_string_equal(out, "[2]<stdout>:x\n");
}

/* Slots that the user gave hold, and so do the GPUs of the host list; a host without GPUs has what
 * it had. A host of which no rank is left quits. */
static void test_slots_that_hold(void **state)
{
    struct late *late = *state;
    struct job *job = &late->f->job;
    has_gpus(late, 0, 8);
    has_gpus(late, 1, 8);
    add_host(late, "a", 1, true);
    add_host(late, "b", 3, false)->traits.gpus = 3;
    late->request.np = 1;
    assert_int_equal(late_plan_take(job, &late->plan), 0);
    assert_int_equal(job->plan->size, 1);
    assert_int_equal(job->nodes[1]->place, -1);
    assert_int_equal(job->nodes[1]->state, NODE_CLOSING);
    assert_int_equal(job->nodes[0]->state, NODE_UP);
    assert_string_equal(buf_text(&late->f->said), "b: not used, because it gets no rank\n");
}

/* An agent that is a copy of the line says how many its own line wants. A number that no plan has
 * counts as none. */
static void test_slots_of_copies(void **state)
{
    struct late *late = *state;
    has_gpus(late, 0, 8);
    has_gpus(late, 1, 8);
    late->f->job.nodes[0]->hello->slots = 3;
    late->f->job.nodes[1]->hello->slots = UINT32_MAX;
    add_host(late, "a", 1, false);
    add_host(late, "b", 2, true);
    assert_int_equal(late_plan_take(&late->f->job, &late->plan), 0);
    assert_int_equal(late->f->job.plan->nodes[0].local_size, 3);
    assert_int_equal(late->f->job.plan->nodes[1].local_size, 2);
    assert_string_equal(buf_text(&late->f->said), ""); /* they are not those of its GPUs */
}

/* The first plan did without a host, which a copy with fewer slots would make necessary. */
static void test_a_host_that_was_not_called(void **state)
{
    struct late *late = *state;
    struct job *job = &late->f->job;
    has_gpus(late, 0, 0);
    has_gpus(late, 1, 0);
    job->nodes[1]->hello->slots = 1;
    add_host(late, "a", 2, true);
    add_host(late, "b", 2, true);
    add_host(late, "c", 2, true);
    late->request.np = 4;
    assert_int_equal(late_plan_take(job, &late->plan), -1);
    assert_int_equal(job->outside.launcher.status, 123);
    assert_ptr_equal(job->plan, late->f->plan);
}

/* Nobody waits for ranks of the first plan that the last one does not have. */
static void test_fewer_ranks(void **state)
{
    struct late *late = *state;
    struct job *job = &late->f->job;
    has_gpus(late, 0, 0);
    has_gpus(late, 1, 0);
    job->nodes[0]->hello->slots = 1;
    add_host(late, "a", 2, true);
    add_host(late, "b", 1, true);
    rank_exited(&job->ranks, 2, 1);
    assert_int_equal(late_plan_take(job, &late->plan), 0);
    assert_int_equal(job->plan->size, 2);
    assert_int_equal(job->ranks.size, 2);
    assert_int_equal(job->ranks.running + job->ranks.exited, 0);
}

/* The slots of a host with GPUs count as given, for a rule that would give it any number. */
static void test_ranks_on_each_host(void **state)
{
    struct late *late = *state;
    struct mapping mapping = {.rule = MAP_PPR, .per_node = 3};
    has_gpus(late, 0, 2);
    add_host(late, "a", 1, false);
    late->request.mapping = &mapping;
    assert_int_equal(late_plan_take(&late->f->job, &late->plan), -1);
    assert_int_equal(late->f->job.outside.launcher.status, 123);
}

static void test_no_room(void **state)
{
    struct late *late = *state;
    struct job *job = &late->f->job;
    has_gpus(late, 0, 0);
    has_gpus(late, 1, 2);
    add_host(late, "a", 1, false)->max_slots = 1;
    add_host(late, "b", 1, false)->max_slots = 3;
    late->request.np = 4;
    assert_int_equal(late_plan_take(job, &late->plan), -1);
    assert_int_equal(job->state, JOB_ENDING);
    assert_int_equal(job->outside.launcher.status, 123);
    assert_non_null(strstr(job->outside.launcher.text, "4"));
    assert_ptr_equal(job->plan, late->f->plan);
}

static void test_ranks_of_options(void **state)
{
    struct late *late = *state;
    struct job *job = &late->f->job;
    settings_set(&late->f->settings, OPT_pty, "2", SOURCE_FLAG, "--pty", NULL);
    assert_true(late_plan_check_ranks(job));
    settings_set(&late->f->settings, OPT_stdin_, "3", SOURCE_FLAG, "--stdin", NULL);
    assert_false(late_plan_check_ranks(job));
    assert_string_equal(job->outside.launcher.text,
                        "--stdin: rank 3 does not exist; the job has ranks 0 to 2");
    assert_int_equal(job->outside.launcher.status, 2);
    assert_int_equal(job->state, JOB_ENDING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_late, close_late)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_slots_of_gpus),   TEST(test_slots_that_hold),
        TEST(test_slots_of_copies), TEST(test_a_host_that_was_not_called),
        TEST(test_fewer_ranks),     TEST(test_ranks_on_each_host),
        TEST(test_no_room),         TEST(test_ranks_of_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
