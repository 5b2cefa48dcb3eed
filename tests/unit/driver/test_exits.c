/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say about ends, and about processes that SIGKILL does not end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/job_fixture.h"

static int bad_hosts, stuck_hosts; /* how often they were told */

static void unkilled(struct job *job, const struct node_link *node, const char *what)
{
    (void)job, (void)node;
    stuck_hosts += strstr(what, "not even SIGKILL ends pid ") == what;
}

static void host_bad(struct job *job, const struct node_link *node, enum host_bad kind,
                     const char *why)
{
    (void)job, (void)node;
    bad_hosts += kind == HOST_BAD_UNKILLED && why != NULL;
}

static void take_frame(struct fixture *f, int node, enum frame_type type, void *message)
{
    struct agent_frame frame = {.type = type, .message = message};
    const struct part_frame *own = exits_part.frames;
    while (own->type != type)
        own++;
    assert_int_equal(own->rule.take(&f->job, f->job.nodes[node], &frame), 0);
}

static void take(struct fixture *f, int node, const char *what)
{
    Hvdrun__Unkilled message = HVDRUN__UNKILLED__INIT;
    message.what = (char *)what;
    take_frame(f, node, FRAME_UNKILLED, &message);
}

static void expect_lines(const struct fixture *f, int lines)
{
    int count = 0;
    for (const char *at = buf_text(&f->said); (at = strstr(at, "look there")) != NULL; at++)
        count++;
    assert_int_equal(count, lines);
}

/* A host whose time as a bad one is over may be in use again, with the same process on it. */
static void test_an_unkilled_process_is_told_again(void **state)
{
    struct fixture *f = *state;
    static const struct job_kind kind = {.unkilled = unkilled};
    static const struct driver_part part = {.name = "test", .host_bad = host_bad};
    static const struct driver_part *const parts[PART_COUNT] = {&part};
    f->job.kind = &kind;
    f->job.parts = parts;
    bad_hosts = stuck_hosts = 0;
    take(f, 0, "pid 7 (cat)");
    take(f, 0, "pid 7 (cat)");
    expect_lines(f, 1);
    assert_int_equal(stuck_hosts, 2);
    assert_int_equal(bad_hosts, 2);
    take(f, 1, "pid 7 (cat)");
    expect_lines(f, 2);
    take(f, 0, "pid 8 (cat)");
    expect_lines(f, 3);
    assert_int_equal(bad_hosts, 4);
}

static void no_exit(struct job *job, const struct exit_event *event)
{
    (void)job, (void)event;
}

/* Rank 0 was ending when the kill came, and rank 1 was not. */
static void test_what_was_ending_is_not_ended_by_a_kill(void **state)
{
    struct fixture *f = *state;
    static const struct job_kind kind = {.exited = no_exit};
    static const struct driver_part *const parts[PART_COUNT] = {NULL};
    f->job.kind = &kind;
    f->job.parts = parts;
    struct node_link *node = f->job.nodes[0];
    node->killed_ns = node_link_time(node, 100 * SECOND);
    for (uint32_t seat = 0; seat < 2; seat++) {
        struct rank_record *record = &f->job.ranks.records[seat];
        Hvdrun__Exited message = HVDRUN__EXITED__INIT;
        record->state = RANK_RUNNING;
        record->started_ns = 0;
        message.seat = seat;
        message.code = 3;
        message.when_ns = 101 * SECOND;
        message.ending_ns = seat == 0 ? 99 * SECOND : 0;
        take_frame(f, 0, FRAME_EXITED, &message);
        assert_int_equal(record->ended_by_us, seat == 1);
        assert_int_equal(record->ended_ns, node_link_time(node, 101 * SECOND));
    }
}

static int64_t told_ns;

static void keep_time(struct job *job, const struct exit_event *event)
{
    (void)job;
    told_ns = event->when_ns;
}

/* Its peers may end before it, and they keep their order. But a crash is no answer to their ends.
 */
static void test_a_crash_counts_from_when_it_was_ending(void **state)
{
    struct fixture *f = *state;
    static const struct job_kind kind = {.exited = keep_time};
    static const struct driver_part *const parts[PART_COUNT] = {NULL};
    f->job.kind = &kind;
    f->job.parts = parts;
    for (uint32_t seat = 0; seat < 2; seat++) {
        Hvdrun__Exited message = HVDRUN__EXITED__INIT;
        message.seat = seat;
        message.signaled = seat == 0;
        message.code = SIGSEGV;
        message.when_ns = 101 * SECOND;
        message.ending_ns = 99 * SECOND;
        take_frame(f, 0, FRAME_EXITED, &message);
        int64_t wanted = node_link_time(f->job.nodes[0], (seat == 0 ? 99 : 101) * SECOND);
        assert_int_equal(told_ns, wanted);
        assert_int_equal(f->job.ranks.records[seat].ended_ns, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_unkilled_process_is_told_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_ending_is_not_ended_by_a_kill, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_crash_counts_from_when_it_was_ending, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
