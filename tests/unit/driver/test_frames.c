/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"

/* A job in its second epoch, and one node of it. */
struct fixture {
    struct job job;
    struct node_link node;
    struct job_kind kind;
};

static int take_ready(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)node;
    job->nodes_ready += (int)frame->length;
    return 0;
}

static int take_notified(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)node, (void)frame;
    job->nodes_up++;
    return 0;
}

static const struct frame_rule own[FRAME_TYPES] = {
    [FRAME_READY] = {take_ready, NULL, EPOCHS_PRESENT, NODE_UP, false},
    [FRAME_NOTIFIED] = {take_notified, NULL, EPOCHS_ALL, NODE_STARTING, true},
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.kind = {.frames = own}, .node = {.state = NODE_RUNNING, .place = 0}};
    f.job = (struct job){.kind = &f.kind, .epoch = 2};
    f.job.parts = driver_parts;
    parts_note_frames(&f.job);
    f.job.loop = loop_create(NULL);
    *state = &f;
    return f.job.loop == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    loop_destroy(f->job.loop);
    return 0;
}

static int take(struct fixture *f, uint8_t type, uint32_t epoch)
{
    struct frame_header header = {.type = type, .epoch = epoch, .length = 1};
    return frames_take(&f->job, &f->node, &header, (const uint8_t *)"x");
}

static void test_a_kind_has_frames_of_its_own(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(take(f, FRAME_READY, 2), 0);
    assert_int_equal(f->job.nodes_ready, 1);
    assert_int_equal(take(f, FRAME_NOTIFIED, 0), 0);
    assert_int_equal(f->job.nodes_up, 1);
}

static void test_what_nobody_takes_is_a_breach(void **state)
{
    struct fixture *f = *state;
    static const uint8_t types[] = {FRAME_WELCOME,
                                    FRAME_PREPARE,
                                    FRAME_QUIT,
                                    FRAME_TERMINATE,
                                    FRAME_ASK,
                                    FRAME_KV_REPLY,
                                    0,
                                    200,
                                    255};
    for (size_t i = 0; i < sizeof(types); i++)
        assert_int_equal(take(f, types[i], 2), -1);
}

static void test_late_frames_are_dropped(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(take(f, FRAME_READY, 1), 0);
    assert_int_equal(take(f, FRAME_READY, 3), 0);
    assert_int_equal(f->job.nodes_ready, 0);
    f->node.state = NODE_ENDING;
    assert_int_equal(take(f, FRAME_ENDED, 1), 0);
    assert_int_equal(f->node.state, NODE_ENDING);
    assert_int_equal(take(f, FRAME_ENDED, 2), 0);
    assert_int_equal(f->node.state, NODE_ENDED);
}

/* Workers of an earlier epoch live on, and are ended later. */
static void test_survivors_speak_in_their_epoch(void **state)
{
    struct fixture *f = *state;
    f->kind.many_epochs = true;
    f->node.state = NODE_ENDING;
    assert_int_equal(take(f, FRAME_ENDED, 1), 0);
    assert_int_equal(f->node.state, NODE_ENDED);
    assert_int_equal(take(f, FRAME_READY, 1), 0); /* that is not about a worker */
    assert_int_equal(f->job.nodes_ready, 0);
}

static void test_too_early_is_a_breach(void **state)
{
    struct fixture *f = *state;
    static const uint8_t types[] = {FRAME_STARTED,      FRAME_EXITED,     FRAME_FINISHED,
                                    FRAME_OUTPUT,       FRAME_ABORT,      FRAME_KV_REQUEST,
                                    FRAME_STDIN_CREDIT, FRAME_MPI_COLLECT};
    f->node.state = NODE_READY;
    for (size_t i = 0; i < sizeof(types); i++)
        assert_int_equal(take(f, types[i], 2), -1);
    f->node.state = NODE_RUNNING;
    assert_int_equal(take(f, FRAME_KILLING, 2), -1); /* nobody was told to end */
    f->node.state = NODE_STARTING;
    assert_int_equal(take(f, FRAME_READY, 2), -1);
}

/* "x" is no message. */
static void test_an_unreadable_body_is_a_breach(void **state)
{
    struct fixture *f = *state;
    static const uint8_t types[] = {FRAME_STARTED,      FRAME_EXITED,   FRAME_FINISHED, FRAME_ABORT,
                                    FRAME_KV_REQUEST,   FRAME_ANSWER,   FRAME_PROGRESS, FRAME_STALL,
                                    FRAME_STDIN_CREDIT, FRAME_MPI_STORE};
    for (size_t i = 0; i < sizeof(types); i++)
        assert_int_equal(take(f, types[i], 2), -1);
}

static void test_a_node_without_a_place_has_nothing_to_say_of_mpi(void **state)
{
    struct fixture *f = *state;
    f->node.place = -1;
    assert_int_equal(take(f, FRAME_MPI_MODEX, 2), 0); /* the body is not even read */
    assert_int_equal(take(f, FRAME_NOTIFIED, 2), 0);
    assert_int_equal(f->job.nodes_up, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_kind_has_frames_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_nobody_takes_is_a_breach, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_frames_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survivors_speak_in_their_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_early_is_a_breach, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_unreadable_body_is_a_breach, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_node_without_a_place_has_nothing_to_say_of_mpi,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
