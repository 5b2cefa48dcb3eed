/* SPDX-License-Identifier: Apache-2.0 */
/* When the launcher of a suspended job stops itself. Each case runs in a child, which it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "driver/ask_fixture.h"
#include "driver/run/run.h"

static void answer(struct job *job, int node)
{
    struct agent_frame frame = {.type = FRAME_SUSPENDED};
    assert_int_equal(suspension_part.frames[0].rule.take(job, job->nodes[node], &frame), 0);
}

static void lose(struct agents *agents, int node)
{
    struct job *job = &agents->f->job;
    agents_disconnect(agents, node);
    if (suspension_part.node_closed != NULL)
        suspension_part.node_closed(job, job->nodes[node]);
}

/* s: suspend, c: continue, 0 and 1: the agent of this host answers, w and x: that of host 0 or 1 is
 * lost, e: the job ends, m: others may join it. */
static void take(struct agents *agents, char step)
{
    static const struct job_kind elastic = {.has_workers = true, .many_epochs = true};
    struct job *job = &agents->f->job;
    switch (step) {
    case 'm': job->kind = &elastic; break;
    case 's': suspension_begin(job); break;
    case 'c': suspension_end(job); break;
    case 'w': lose(agents, 0); break;
    case 'x': lose(agents, 1); break;
    case 'e': job->state = JOB_CLOSING; break;
    default: answer(job, step - '0'); break;
    }
    run_turns(job->loop, 1);
}

/* Whether it has stopped when all these steps are taken. */
static bool stops_after(const char *steps)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        void *state = NULL;
        struct agents agents;
        if (setup(&state) < 0)
            _exit(1);
        remove_folder(((struct fixture *)state)->folder); /* no teardown comes */
        agents_begin(&agents, state);
        part_open(&agents.f->job, PART_suspension, &suspension_part, NULL);
        for (int i = 0; i < 2; i++)
            agents_connect(&agents, i);
        for (const char *at = steps; *at != '\0'; at++)
            take(&agents, *at);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    bool stopped = WIFSTOPPED(status);
    if (stopped) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return stopped;
}

static void test_all_agents_have_answered(void **state)
{
    (void)state;
    assert_false(stops_after("s"));
    assert_false(stops_after("s0"));
    assert_true(stops_after("s01"));
}

/* What agents say of an earlier stop comes when the next one has begun. */
static void test_late_answers(void **state)
{
    (void)state;
    assert_false(stops_after("scs01"));
    assert_true(stops_after("scs0101"));
}

/* Nobody waits for the answer of a host that is lost. */
static void test_a_lost_host(void **state)
{
    (void)state;
    assert_true(stops_after("s0x"));
    assert_false(stops_after("sx"));
}

/* Nothing is left that could be continued: the job ends with its report and status. */
static void test_the_last_host_is_lost(void **state)
{
    (void)state;
    assert_false(stops_after("swx"));
    assert_false(stops_after("s0ex"));
    assert_true(stops_after("mswx")); /* it waits for hosts */
    assert_false(stops_after("mswex"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_agents_have_answered),
        cmocka_unit_test(test_late_answers),
        cmocka_unit_test(test_a_lost_host),
        cmocka_unit_test(test_the_last_host_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
