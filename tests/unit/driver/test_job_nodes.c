/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/job/job_nodes.h"

#define NODES 1000

/* How often a node was looked at: of the nodes, liveness.heard_ms is free to count it. */
static bool has_ended(const struct node_link *node)
{
    ((struct node_link *)(uintptr_t)node)->liveness.heard_ms++;
    return node->state >= NODE_ENDED;
}

static void fill(struct job *job)
{
    *job = (struct job){.node_count = 0};
    for (int i = 0; i < NODES; i++)
        job_add_node(job, "a");
}

static void clear(struct job *job)
{
    for (int i = 0; i < job->node_count; i++)
        node_link_destroy(job->nodes[i]);
    free(job->nodes);
}

static int64_t looks(const struct job *job)
{
    int64_t sum = 0;
    for (int i = 0; i < job->node_count; i++)
        sum += job->nodes[i]->liveness.heard_ms;
    return sum;
}

/* In whatever order they end: it is so when the last one has, and it took few looks at a node. */
static void test_all_nodes(void **state)
{
    (void)state;
    static const int steps[] = {1, NODES - 1, 7, 333}; /* none shares a factor with NODES */
    for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
        struct job job;
        fill(&job);
        for (int i = 0, at = 0; i < NODES; i++, at = (at + steps[s]) % NODES) {
            assert_false(job_all_nodes(&job, has_ended));
            job.nodes[at]->state = NODE_ENDED;
        }
        assert_true(job_all_nodes(&job, has_ended));
        assert_in_range(looks(&job), NODES, 4 * NODES);
        clear(&job);
    }
}

/* A node that is called again is found, wherever it stands. */
static void test_one_comes_back(void **state)
{
    (void)state;
    struct job job;
    fill(&job);
    for (int i = 0; i < NODES; i++)
        job.nodes[i]->state = NODE_ENDED;
    assert_true(job_all_nodes(&job, has_ended));
    for (int i = 0; i < NODES; i += 111) {
        job.nodes[i]->state = NODE_CALLING;
        assert_false(job_all_nodes(&job, has_ended));
        job.nodes[i]->state = NODE_ENDED;
        assert_true(job_all_nodes(&job, has_ended));
    }
    clear(&job);
}

static void test_no_nodes(void **state)
{
    (void)state;
    struct job job = {.node_count = 0};
    assert_true(job_all_nodes(&job, has_ended));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_nodes),
        cmocka_unit_test(test_one_comes_back),
        cmocka_unit_test(test_no_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
