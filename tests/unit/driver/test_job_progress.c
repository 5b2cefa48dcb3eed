/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent reports of the progress of its workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "driver/tell/rank_progress.h"
#include "wire/control.pb-c.h"

static int heard_of;

static void progressed(struct job *job, int seat, int64_t when_ns)
{
    (void)when_ns;
    assert_non_null(rank_progress(job, seat));
    heard_of |= 1 << seat;
}

static int begin(void **state)
{
    static struct job_kind kind;
    if (setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    kind = *f->job.kind;
    kind.progressed = progressed;
    f->job.kind = &kind;
    part_open(&f->job, PART_progress_list, &progress_list_part, NULL);
    heard_of = 0;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    part_close(&f->job, PART_progress_list, &progress_list_part);
    return teardown(state);
}

static Hvdrun__RankProgress report(int seat, double percent)
{
    Hvdrun__RankProgress report = HVDRUN__RANK_PROGRESS__INIT;
    report.seat = (uint32_t)seat;
    report.epoch = 1;
    report.percent = percent;
    report.eta_s = -1;
    report.text = (char *)"";
    return report;
}

/* From the agent of host a. */
static int take(struct fixture *f, Hvdrun__RankProgress **reports, size_t count)
{
    Hvdrun__Progress message = HVDRUN__PROGRESS__INIT;
    message.workers = reports;
    message.n_workers = count;
    struct agent_frame frame = {.message = &message};
    return progress_list_part.frames[0].rule.take(&f->job, f->job.nodes[0], &frame);
}

static void test_a_report(void **state)
{
    struct fixture *f = *state;
    char *names[] = {"loss", "grad"}, *values[] = {"0.25", "nan"};
    Hvdrun__RankProgress zero = report(0, 42.5), one = report(1, 40), *both[] = {&zero, &one};
    zero.eta_s = 360;
    zero.text = (char *)"epoch 3";
    zero.names = names;
    zero.n_names = 2;
    zero.values = values;
    zero.n_values = 2;
    one.names = names;
    one.n_names = 2;
    one.values = values;
    one.n_values = 1; /* what no agent sends */
    assert_int_equal(take(f, both, 2), 0);
    const struct progress *progress = &rank_progress(&f->job, 0)->progress;
    assert_true(progress->percent > 42 && progress->percent < 43);
    assert_true(progress->eta_s > 359);
    assert_string_equal(progress->text, "epoch 3");
    assert_string_equal(progress_metric(progress, "grad"), "nan");
    assert_int_equal(rank_progress(&f->job, 1)->progress.metric_count, 1);
    assert_null(rank_progress(&f->job, 2));
    assert_int_equal(heard_of, 3);
}

/* Of an earlier worker on the seat, or of one that is on another host now. */
static void test_late_reports(void **state)
{
    struct fixture *f = *state;
    Hvdrun__RankProgress old = report(0, 10), moved = report(2, 20), good = report(1, 30),
                         *all[] = {&old, &moved, &good};
    old.epoch = 7;
    assert_int_equal(take(f, all, 3), 0);
    assert_null(rank_progress(&f->job, 0));
    assert_null(rank_progress(&f->job, 2));
    assert_non_null(rank_progress(&f->job, 1));
    assert_int_equal(heard_of, 2);
}

static void test_nonsense(void **state)
{
    struct fixture *f = *state;
    Hvdrun__RankProgress beyond = report(3, 10), *one[] = {&beyond};
    assert_int_equal(take(f, one, 1), -1);
    assert_int_equal(heard_of, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_report, begin, end),
        cmocka_unit_test_setup_teardown(test_late_reports, begin, end),
        cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
