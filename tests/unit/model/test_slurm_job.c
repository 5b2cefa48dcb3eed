/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/allocation/slurm.h"

/* Slurm 22.05 */
#define SHOWN                                                                                      \
    "JobId=2 JobName=wrap UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 "       \
    "Nice=0 Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 "   \
    "Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:01 TimeLimit=00:05:00 "            \
    "TimeMin=N/A SubmitTime=2026-11-21T11:20:30 EligibleTime=2026-11-21T11:20:30 "                 \
    "AccrueTime=2026-11-21T11:20:30 StartTime=2026-11-21T11:20:31 EndTime=2026-11-21T11:25:31 "    \
    "Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-21T11:20:31 "            \
    "Scheduler=Main Partition=rig AllocNode:Sid=launcher:9 ReqNodeList=(null) ExcNodeList=(null) " \
    "NodeList=node1 BatchHost=node1 NumNodes=1 NumCPUs=1 Command=/tmp/x WorkDir=/tmp \n"

static struct slurm_job parsed(const char *text)
{
    struct slurm_job job;
    struct error err = ERROR_INIT;
    assert_int_equal(slurm_job_parse(text, strlen(text), &job, &err), 0);
    return job;
}

static void test_a_running_job(void **state)
{
    (void)state;
    struct slurm_job job = parsed(SHOWN);
    assert_string_equal(job.state, "RUNNING");
    assert_int_equal(job.end_s, 1795260331);
    assert_true(job.batch && job.requeue && !job.preempted);
    assert_false(slurm_job_is_ousted(&job));
}

static void test_who_wants_the_end(void **state)
{
    (void)state;
    const struct {
        const char *text;
        bool ousted;
    } cases[] = {
        {"JobId=1 JobState=TIMEOUT", true},
        {"JobId=1 JobState=PREEMPTED", true},
        {"JobId=1 JobState=DEADLINE", true},
        {"JobId=1 JobState=NODE_FAIL", true},
        {"JobId=1 JobState=CANCELLED", false},
        {"JobId=1 JobState=COMPLETING", false}, /* scancel */
        {"JobId=1 JobState=COMPLETING Reason=None PreemptTime=None", false},
        {"JobId=1 JobState=COMPLETING Reason=TimeLimit", true},
        {"JobId=1 JobState=COMPLETING Reason=NodeDown", true},
        {"JobId=1 JobState=COMPLETING Reason=None PreemptTime=2026-11-21T11:20:31", true},
        {"JobId=1 JobState=RUNNING Reason=TimeLimit", false},
        {"JobId=1 JobState=RUNNING", false},
        {"JobId=1 JobState=RUNNING PreemptTime=None", false},
        {"JobId=1 JobState=RUNNING PreemptEligibleTime=2026-11-21T11:20:31 PreemptTime=None",
         false},
        {"JobId=1 JobState=RUNNING PreemptTime=2026-11-21T11:20:31", true},
        {"JobId=1 JobState=SIGNALING PreemptTime=2026-11-21T11:20:31", true},
        {"JobId=1 JobState=SIGNALING PreemptTime=None", false},
        {"JobId=1 JobState=CANCELLED PreemptTime=2026-11-21T11:20:31", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slurm_job job = parsed(cases[i].text);
        assert_int_equal(slurm_job_is_ousted(&job), cases[i].ousted);
    }
}

static void test_what_is_not_said(void **state)
{
    (void)state;
    struct slurm_job job = parsed("JobState=RUNNING EndTime=Unknown Requeue=0 BatchFlag=0");
    assert_int_equal(job.end_s, 0);
    assert_false(job.requeue || job.batch);
    job = parsed("JobState=RUNNING\nJobState=TIMEOUT EndTime=5");
    assert_string_equal(job.state, "RUNNING");
    assert_int_equal(job.end_s, 0);
    const char *const wrong[] = {"",
                                 "\n",
                                 "slurm_load_jobs error: Invalid job id specified",
                                 "JobState=",
                                 "XJobState=RUNNING",
                                 "JobState=AVERYLONGSTATETHATNOVERSIONOFSLURMHASEVERHADBEFORE"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(slurm_job_parse(wrong[i], strlen(wrong[i]), &job, &err), -1);
        assert_int_equal(err.status, STATUS_LAUNCHER);
    }
}

/* Every beginning of it, in memory that ends there. */
static void test_torn_texts(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof(SHOWN); length++) {
        char *torn = mem_strndup(SHOWN, length);
        char *exact = mem_alloc(length + 1);
        memcpy(exact, torn, length);
        struct slurm_job job;
        struct error err = ERROR_INIT;
        (void)slurm_job_parse(exact, length, &job, &err);
        free(exact);
        free(torn);
    }
}

static void test_times(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t seconds;
    } cases[] = {
        {"1970-01-01T00:00:01", 1},
        {"2000-02-29T12:00:00", 951825600},
        {"2000-03-01T00:00:00", 951868800},
        {"2026-11-21T10:39:00", 1795257540},
        {"2038-01-19T03:14:08", 2147483648},
        {"2100-03-01T00:00:00", 4107542400},
        {"1795257540", 1795257540},
        {"Unknown", 0},
        {"None", 0},
        {"N/A", 0},
        {"", 0},
        {"2026-11-21T10:39", 0},
        {"2026-13-21T10:39:00", 0},
        {"2026-11-21T10:39:00Z", 0},
        {"2026-11-21 10:39:00", 0},
        {"-5", 0},
        {"99999999999999999999999999", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(slurm_time_parse(cases[i].text, strlen(cases[i].text)), cases[i].seconds);
    assert_int_equal(slurm_time_parse("12\0", 3), 0);
    assert_int_equal(slurm_time_parse("2026-11-21\0T10:39:0", 19), 0); /* a form of parse_utc() */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_running_job),
        cmocka_unit_test(test_who_wants_the_end),
        cmocka_unit_test(test_what_is_not_said),
        cmocka_unit_test(test_torn_texts),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
