/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/metrics/metrics.h"

static const struct exposition_family families[] = {
    {"x_job", EXPOSITION_INFO, NULL, "The job."},
    {"x_cpu_seconds", EXPOSITION_COUNTER, "seconds", "CPU time."},
    {"x_ranks", EXPOSITION_GAUGE, NULL, "Ranks."},
};

static void write_all(enum exposition_format format, struct buf *out)
{
    struct exposition exposition = {.out = out, .format = format, .common = {"job_id", "j\"1"}};
    const struct exposition_label labels[] = {{"host", "a\\b\nc"}, {"rank", "\xff"}};
    exposition_family(&exposition, &families[0]);
    exposition_sample(&exposition, NULL, 0, 1);
    exposition_family(&exposition, &families[1]);
    exposition_sample(&exposition, labels, 2, 1700000000.125);
    exposition_sample(&exposition, labels, 1, NAN);
    exposition_sample(&exposition, labels, 1, INFINITY);
    exposition_family(&exposition, &families[2]);
    exposition_sample(&exposition, labels, 1, 9007199254740991.0);
    exposition_sample(&exposition, labels, 2, -3);
    exposition_end(&exposition);
}

static void test_openmetrics(void **state)
{
    (void)state;
    struct buf out AUTO_BUF = BUF_INIT(4096);
    write_all(EXPOSITION_OPENMETRICS, &out);
    assert_string_equal(
        buf_text(&out),
        "# HELP x_job The job.\n"
        "# TYPE x_job info\n"
        "x_job_info{job_id=\"j\\\"1\"} 1\n"
        "# HELP x_cpu_seconds CPU time.\n"
        "# TYPE x_cpu_seconds counter\n"
        "# UNIT x_cpu_seconds seconds\n"
        "x_cpu_seconds_total{job_id=\"j\\\"1\",host=\"a\\\\b\\nc\",rank=\"?\"} 1700000000.125\n"
        "# HELP x_ranks Ranks.\n"
        "# TYPE x_ranks gauge\n"
        "x_ranks{job_id=\"j\\\"1\",host=\"a\\\\b\\nc\"} 9007199254740991\n"
        "x_ranks{job_id=\"j\\\"1\",host=\"a\\\\b\\nc\",rank=\"?\"} -3\n"
        "# EOF\n");
}

static void test_text(void **state)
{
    (void)state;
    struct buf out AUTO_BUF = BUF_INIT(4096);
    write_all(EXPOSITION_TEXT, &out);
    assert_string_equal(
        buf_text(&out),
        "# HELP x_job_info The job.\n"
        "# TYPE x_job_info gauge\n"
        "x_job_info{job_id=\"j\\\"1\"} 1\n"
        "# HELP x_cpu_seconds_total CPU time.\n"
        "# TYPE x_cpu_seconds_total counter\n"
        "x_cpu_seconds_total{job_id=\"j\\\"1\",host=\"a\\\\b\\nc\",rank=\"?\"} 1700000000.125\n"
        "# HELP x_ranks Ranks.\n"
        "# TYPE x_ranks gauge\n"
        "x_ranks{job_id=\"j\\\"1\",host=\"a\\\\b\\nc\"} 9007199254740991\n"
        "x_ranks{job_id=\"j\\\"1\",host=\"a\\\\b\\nc\",rank=\"?\"} -3\n");
}

static void test_format(void **state)
{
    (void)state;
    assert_int_equal(exposition_format_for(NULL), EXPOSITION_TEXT);
    assert_int_equal(exposition_format_for("*/*"), EXPOSITION_TEXT);
    assert_int_equal(exposition_format_for("application/openmetrics-text;version=1.0.0;q=0.5,*/*"),
                     EXPOSITION_OPENMETRICS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmetrics),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
