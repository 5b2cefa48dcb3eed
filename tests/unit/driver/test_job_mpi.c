/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver passes on between the agents of MPI ranks; the agents are the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/mpi/mpi.h"
#include "loop_fixture.h"

#define SIZE 3

struct fixture {
    struct loop *loop;
    struct plan plan;
    struct job job;
    struct link *agents[SIZE];
    int events[SIZE]; /* that the agent of this place has got */
};

static void on_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)body;
    if (header->type == FRAME_MPI_EVENT)
        ++*(int *)context;
}

static void on_closed(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static int setup(void **state)
{
    static const struct link_ops ops = {.frame = on_frame, .closed = on_closed};
    static struct fixture f;
    f = (struct fixture){.loop = loop_create(NULL), .plan = {.node_count = SIZE}};
    f.job = (struct job){.plan = &f.plan, .loop = f.loop, .epoch = 1, .state = JOB_RUNNING};
    for (int i = 0; i < SIZE; i++) {
        struct node_link *node = job_add_node(&f.job, "host");
        int pair[2];
        assert_int_equal(fd_socketpair(pair), 0);
        node->state = NODE_RUNNING;
        node->link = link_create(f.loop, pair[0], pair[0], &ops, NULL, NULL);
        f.agents[i] = link_create(f.loop, pair[1], pair[1], &ops, &f.events[i], NULL);
    }
    job_set_places(&f.job, f.job.nodes);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < SIZE; i++)
        link_destroy(f->agents[i]);
    job_free_nodes(&f->job);
    run_turns(f->loop, 2); /* a link with a deferred flush is freed by it */
    loop_destroy(f->loop);
    return 0;
}

static void event_of(struct fixture *f, int place)
{
    Hvdrun__MpiEvent message = HVDRUN__MPI_EVENT__INIT;
    const struct agent_frame frame = {
        .type = FRAME_MPI_EVENT, .epoch = 1, .message = &message.base};
    const struct part_frame *row = job_mpi_part.frames;
    while (row->type != FRAME_MPI_EVENT)
        row++;
    assert_int_equal(row->rule.take(&f->job, f->job.places[place], &frame), 0);
    run_turns(f->loop, 3);
}

static void test_an_event_is_for_all_others(void **state)
{
    struct fixture *f = *state;
    event_of(f, 1);
    assert_int_equal(f->events[0], 1);
    assert_int_equal(f->events[1], 0);
    assert_int_equal(f->events[2], 1);
}

/* Each rank that is ended is an event. For 2,000 hosts, these were 490 MB. */
static void test_ranks_that_are_ended_hear_of_no_other(void **state)
{
    struct fixture *f = *state;
    f->job.state = JOB_ENDING;
    event_of(f, 1);
    assert_int_equal(f->events[0] + f->events[1] + f->events[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_event_is_for_all_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks_that_are_ended_hear_of_no_other, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
