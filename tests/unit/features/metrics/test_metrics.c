/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a job as text, before and after agents have reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/sampled_fixture.h"

static void has(const struct buf *text, const char *line)
{
    if (strstr(buf_text(text), line) == NULL)
        fail_msg("'%s' is missing in: %s", line, buf_text(text));
}

static void test_text(void **state)
{
    struct fixture *f = ((struct sampled *)*state)->f;
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    f->job.state = JOB_RUNNING;
    f->settings.job_name = mem_strdup("night");
    exits(f, 1, false, 3, 6 * SECOND);
    metrics_text(&f->job, EXPOSITION_TEXT, &text);
    has(&text, "# TYPE hvdrun_job_info gauge\nhvdrun_job_info{job_id=\"job-1\",version=\"");
    has(&text, "\",command=\"");
    has(&text, "\",name=\"night\"} 1\n");
    has(&text, "hvdrun_ranks{job_id=\"job-1\",state=\"not_started\"} 0\n");
    has(&text, "hvdrun_job_state{job_id=\"job-1\",state=\"running\"} 1\n");
    has(&text, "hvdrun_job_state{job_id=\"job-1\",state=\"done\"} 0\n");
    has(&text, "# TYPE hvdrun_job_start_time_seconds gauge\n"
               "hvdrun_job_start_time_seconds{job_id=\"job-1\"} 1700000000\n");
    has(&text, "hvdrun_job_size{job_id=\"job-1\"} 3\n");
    has(&text, "hvdrun_job_epoch{job_id=\"job-1\"} 1\n");
    has(&text, "hvdrun_hosts{job_id=\"job-1\",state=\"up\"} 0\n");
    has(&text, "hvdrun_hosts{job_id=\"job-1\",state=\"lost\"} 0\n");
    has(&text, "hvdrun_ranks{job_id=\"job-1\",state=\"running\"} 2\n");
    has(&text, "hvdrun_ranks{job_id=\"job-1\",state=\"finished\"} 1\n");
    has(&text, "hvdrun_ranks{job_id=\"job-1\",state=\"exited\"} 0\n");
    has(&text, "# TYPE hvdrun_restarts_total counter\n"
               "hvdrun_restarts_total{job_id=\"job-1\",reason=\"requeued\"} 0\n#");
    assert_null(strstr(buf_text(&text), "# UNIT"));
    assert_null(strstr(buf_text(&text), "# EOF"));
}

static void test_openmetrics(void **state)
{
    struct fixture *f = ((struct sampled *)*state)->f;
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    metrics_text(&f->job, EXPOSITION_OPENMETRICS, &text);
    has(&text, "# TYPE hvdrun_restarts counter\nhvdrun_restarts_total{");
    has(&text, "# UNIT hvdrun_job_start_time_seconds seconds\n");
    assert_true(text.length > 6);
    assert_string_equal(buf_text(&text) + text.length - 6, "# EOF\n");
}

static void test_after_a_round(void **state)
{
    struct sampled *sampled = *state;
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    agents_connect(&sampled->agents, 0);
    assert_true(sampler_ask(sampled->sampler, NULL, NULL));
    assert_int_equal(sampled_answer(sampled, 1500000), 0);
    metrics_text(&sampled->f->job, EXPOSITION_TEXT, &text);
    has(&text, "hvdrun_host_load1{job_id=\"job-1\",host=\"a\"} 1.5\n#");
    has(&text, "hvdrun_host_memory_bytes{job_id=\"job-1\",host=\"a\"} 8589934592\n#");
    has(&text, "hvdrun_host_memory_available_bytes{job_id=\"job-1\",host=\"a\"} 3221225472\n#");
    has(&text, "{job_id=\"job-1\",host=\"a\",resource=\"memory\"} 3\n#");
    has(&text, "{job_id=\"job-1\",host=\"a\",resource=\"memory\"} 1\n#");
    has(&text, "hvdrun_rank_cpu_seconds_total{job_id=\"job-1\",rank=\"0\",host=\"a\"} 1.5\n");
    has(&text, "hvdrun_rank_resident_bytes{job_id=\"job-1\",rank=\"1\",host=\"a\"} 4097\n#");
    has(&text, "hvdrun_rank_written_bytes_total{job_id=\"job-1\",rank=\"1\",host=\"a\"} 200\n#");
    assert_null(strstr(buf_text(&text), "written_bytes_total{job_id=\"job-1\",rank=\"0\""));
    assert_null(strstr(buf_text(&text), "nan")); /* what is not known has no line */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_openmetrics, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_after_a_round, sampled_begin, sampled_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
