/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "driver/job/job_kind.h"
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

static void say(void *context, enum log_level level, const char *line)
{
    (void)level;
    buf_printf(context, "%s\n", line);
}

/* The user reads when the host is really lost. */
static void test_a_silent_host(void **state)
{
    (void)state;
    static const struct job_kind kind = {.many_epochs = true, .node_timeout_ms = 30000};
    AUTO_BUF struct buf said = BUF_INIT(1000);
    struct settings settings = {.node_timeout = -1};
    struct job job = {.kind = &kind, .settings = &settings, .log = {LOG_DEBUG, say, &said}};
    struct node_link *node = job_add_node(&job, "a");
    job_open_node(&job, node);
    node->ops->suspect(&job, node, true, 5000);
    node->stream = (struct transport_stream){.peer = "192.0.2.1", .peer_port = 22};
    node->ops->suspect(&job, node, true, 5000);
    liveness_host_answers(&node->liveness);
    node->ops->suspect(&job, node, true, 6000);
    assert_string_equal(
        buf_text(&said),
        "a: no heartbeat for 5.0 s; after 30 s the host counts as lost\n"
        "a: no heartbeat for 5.0 s; after 30 s, or 60 s if it still answers, the host counts as "
        "lost\n"
        "a: no heartbeat for 6.0 s; after 60 s the host counts as lost\n");
    clear(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_nodes),
        cmocka_unit_test(test_one_comes_back),
        cmocka_unit_test(test_no_nodes),
        cmocka_unit_test(test_a_silent_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
