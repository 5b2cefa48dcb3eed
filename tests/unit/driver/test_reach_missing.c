/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "driver/reach/call_progress.h"
#include "driver/reach/reach.h"

/* The hosts of a job that does not come up. */

static int open_reach(void **state)
{
    if (setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    part_open(&f->job, PART_call_progress, &call_progress_part, NULL);
    part_open(&f->job, PART_reach, &reach_part, NULL);
    for (int i = 0; i < f->job.node_count; i++)
        reach_add_node(&f->job, f->job.nodes[i], &f->plan->nodes[i].traits);
    return 0;
}

static int close_reach(void **state)
{
    struct fixture *f = *state;
    part_close(&f->job, PART_reach, &reach_part);
    part_close(&f->job, PART_call_progress, &call_progress_part);
    return teardown(state);
}

/* The end of the sentence, and what is logged before it. */
static void expect(struct fixture *f, const char *sentence, const char *said)
{
    buf_clear(&f->block);
    buf_clear(&f->said);
    reach_describe_missing(&f->job, &f->block);
    assert_string_equal(buf_text(&f->block), sentence);
    assert_string_equal(buf_text(&f->said), said);
}

static void add_host(struct fixture *f, const char *name)
{
    struct node_link *node = job_add_node(&f->job, name);
    node->place = 1;
    reach_add_node(&f->job, node, &f->plan->nodes[1].traits);
}

static void test_few(void **state)
{
    struct fixture *f = *state;
    f->job.nodes[0]->stage = STAGE_AUTH;
    f->job.nodes[1]->state = NODE_STARTING;
    f->job.nodes[1]->stage = STAGE_AGENT;
    expect(f, " a (auth; ranks 0-1), b (agent; rank 2)", "");
    f->job.nodes[0]->state = NODE_UP;
    expect(f, " b (agent; rank 2)", "");
    f->job.state = JOB_PREPARING;
    f->job.nodes[1]->state = NODE_READY;
    expect(f, " a (preparing; ranks 0-1)", "");
    f->job.nodes[1]->state = NODE_UNREACHED;
    f->job.nodes[1]->place = -1; /* the job does not wait for it */
    expect(f, " a (preparing; ranks 0-1)", "");
}

/* More than four hosts get lines of their own. */
static void test_many(void **state)
{
    struct fixture *f = *state;
    add_host(f, "c");
    add_host(f, "d");
    expect(f,
           " a (waiting; ranks 0-1), b (waiting; rank 2), c (waiting; rank 2), d (waiting; rank 2)",
           "");
    add_host(f, "e");
    add_host(f, "f");
    f->job.nodes[0]->state = NODE_READY;
    expect(f, " the 5 of 6 hosts named above",
           "b: waiting: no answer in time (rank 2)\nc: waiting: no answer in time (rank 2)\n"
           "d: waiting: no answer in time (rank 2)\ne: waiting: no answer in time (rank 2)\n"
           "f: waiting: no answer in time (rank 2)\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_reach, close_reach)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_few),
        TEST(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
