/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job writes a host down, or takes something else for the cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "unit.h"

/* The clock of the machine is behind that, so no limit of the thread that writes is over at once.
 */
#define NOW_NS (INT64_C(100) * 365 * 86400 * SECOND)
#define LONG_AGO_NS (3600 * SECOND)

/* Host b has left so long ago, and a process on host a cannot be killed. */
static void expect_remembered(struct fixture *f, int64_t ago_ns, bool remembered)
{
    char *path AUTO_FREE = mem_printf("%s/bad", f->folder);
    Hvdrun__AgentHello hello = HVDRUN__AGENT_HELLO__INIT;
    unit_clock_stop(NOW_NS, NOW_NS);
    f->settings.bad_hosts = path;
    f->settings.transport = SET_TRANSPORT_SSH;
    f->job.nodes[1]->hello = &hello;
    f->job.nodes[1]->ended_ns = NOW_NS - ago_ns;
    assert_int_equal(bad_hosts_part.open(&f->job, NULL), 0);
    bad_hosts_part.host_bad(&f->job, f->job.nodes[0], HOST_BAD_UNKILLED, "stuck");
    bad_hosts_part.tell(&f->job);
    bad_hosts_part.close(&f->job);
    unit_clock_run();
    f->job.nodes[1]->hello = NULL;
    f->settings.bad_hosts = NULL;
    const char *said = strstr(buf_text(&f->said), "1 of 1 hosts of this job were lost");
    assert_int_equal(said == NULL, remembered);
    assert_int_equal(access(path, F_OK) == 0, remembered);
}

static void test_a_host_that_has_just_left_counts(void **state)
{
    expect_remembered(*state, SECOND, true);
}

static void test_a_host_that_left_long_ago_does_not_count(void **state)
{
    expect_remembered(*state, LONG_AGO_NS, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_host_that_has_just_left_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_host_that_left_long_ago_does_not_count, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
