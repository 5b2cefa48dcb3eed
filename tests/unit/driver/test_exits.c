/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say about processes that SIGKILL does not end. */
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

static void take(struct fixture *f, int node, const char *what)
{
    Hvdrun__Unkilled message = HVDRUN__UNKILLED__INIT;
    struct agent_frame frame = {.type = FRAME_UNKILLED, .message = &message};
    const struct part_frame *own = exits_part.frames;
    message.what = (char *)what;
    while (own->type != FRAME_UNKILLED)
        own++;
    assert_int_equal(own->rule.take(&f->job, f->job.nodes[node], &frame), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_unkilled_process_is_told_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
