/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that a job answers: those of its kind and its parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/ask_fixture.h"
#include "driver/control/request.h"
#include "driver/elastic/parts.h"
#include "driver/job/part.h"
#include "driver/tell/recent.h"
#include "driver/tell/stalls.h"

static const struct control_rule *find_rule(void *context, const char *name)
{
    const struct job *job = context;
    const struct control_rule *rule = control_rule_of(job->kind->requests, name);
    for (int i = 0; i < PART_COUNT && rule == NULL; i++)
        rule = control_rule_of(driver_parts[i]->requests, name);
    return rule;
}

/* `request` has ' for ". */
static json_t *ask(struct fixture *f, const char *request, struct control_later *later)
{
    struct control_answers answers = {"record-1", find_rule, &f->job};
    char *line AUTO_FREE = mem_strdup(request);
    for (char *at = line; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    return control_request_answer(&answers, line, strlen(line), false, later);
}

static void expect(struct fixture *f, const char *request, const char *answer)
{
    expect_json(ask(f, request, NULL), answer);
}

static void expect_error(struct fixture *f, const char *request, const char *part)
{
    json_t *answer = ask(f, request, NULL);
    const char *text = json_string_value(json_object_get(answer, "error"));
    if (text == NULL || strstr(text, part) == NULL)
        fail_msg("'%s' to %s", text == NULL ? "no error" : text, request);
    json_decref(answer);
}

static void test_two_parts_do_not_answer_the_same(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < PART_COUNT; i++) {
        const struct control_rule *rule = driver_parts[i]->requests;
        for (; rule != NULL && rule->name != NULL; rule++)
            assert_ptr_equal(find_rule(&f->job, rule->name), rule);
    }
}

static void test_status(void **state)
{
    struct fixture *f = *state;
    f->job.state = JOB_RUNNING;
    f->job.parts = driver_parts;
    f->job.own[PART_recent] = recent_create(RECENT_BYTES);
    f->job.own[PART_stall_list] = stall_list_create();
    json_t *answer = ask(f, "{'do':'status'}", NULL);
    expect_json(json_incref(json_object_get(answer, "job")), "'record-1'");
    expect_json(json_incref(json_object_get(answer, "protocol")), "1");
    expect_json(json_incref(json_object_get(answer, "state")), "'running'");
    assert_null(json_object_get(answer, "metrics"));
    json_decref(answer);
    assert_null(ask(f, "{'do':'wait'}", NULL));
    recent_destroy(job_part(&f->job, recent));
    stall_list_destroy(job_part(&f->job, stall_list));
}

static void test_signals(void **state)
{
    struct fixture *f = *state;
    expect_error(f, "{'do':'signal'}", "\"signal\" is missing");
    expect_error(f, "{'do':'signal','signal':'NONE'}", "no signal has that name");
    expect_error(f, "{'do':'signal','signal':'STOP'}", "stop or continue");
    expect_error(f, "{'do':'signal','signal':'CONT'}", "stop or continue");
    expect_error(f, "{'do':'signal','signal':'USR1','ranks':3}", "not a string");
    expect_error(f, "{'do':'signal','signal':'USR1','ranks':'3'}", "3");
    for (int rank = 0; rank < 3; rank++) {
        exits(f, rank, false, 0, 6 * SECOND);
        expect_error(f, "{'do':'signal','signal':'KILL','ranks':'0'}",
                     rank < 2 ? "rank 0 does not run" : "no rank runs");
    }
}

/* Later, it would end the output instead. */
static void test_stop_at_the_end(void **state)
{
    struct fixture *f = *state;
    expect_error(f, "{'do':'stop','grace_s':-1}", "grace_s");
    f->job.state = JOB_CLOSING;
    expect(f, "{'do':'stop','grace_s':1}", "{'ok':true}");
    assert_string_equal(buf_text(&f->said), "");
}

static void test_hosts_of_a_static_job(void **state)
{
    struct fixture *f = *state;
    expect_error(f, "{'do':'drain','host':'a'}", "this job is not elastic");
    expect_error(f, "{'do':'undrain','host':'a'}", "this job is not elastic");
    expect_error(f, "{'do':'add','hosts':'c:2'}", "this job is not elastic");
}

static void test_hosts_of_an_elastic_job(void **state)
{
    struct fixture *f = *state;
    f->job.kind = &elastic_kind;
    expect_error(f, "{'do':'drain'}", "\"host\" is missing");
    expect_error(f, "{'do':'drain','host':'-c'}", "not the name of a host");
    expect_error(f, "{'do':'drain','host':'c','within_s':'1m'}", "within_s");
    expect_error(f, "{'do':'undrain','host':['c']}", "not a string");
    expect_error(f, "{'do':'add'}", "\"hosts\" is missing");
    expect_error(f, "{'do':'add','hosts':'d:4,'}", "entry 2 is empty");
    expect_error(f, "{'do':'add','hosts':'d;x'}", "not a host name");
}

static void take(void *context, const json_t *reply)
{
    json_t **answer = context;
    assert_null(*answer);
    *answer = json_deep_copy(reply);
}

static void answer_states(struct agents *agents, int number)
{
    Hvdrun__StateReport report = HVDRUN__STATE_REPORT__INIT;
    assert_int_equal(agents_answer(agents, number, &report.base), 0);
}

static void ask_stacks(struct fixture *f, const char *request, json_t **answer)
{
    struct control_later *later = control_later_create(take, NULL, answer);
    *answer = NULL;
    assert_null(ask(f, request, later));
    assert_true(control_later_is_taken(later));
}

static void test_stacks(void **state)
{
    struct fixture *f = *state;
    struct agents agents;
    json_t *all, *some, *late;
    agents_begin(&agents, f);
    agents_connect(&agents, 0);
    agents_connect(&agents, 1);
    assert_int_equal(stacks_request_part.open(&f->job, NULL), 0);
    expect_error(f, "{'do':'stacks','ranks':3}", "not a string");
    expect_error(f, "{'do':'stacks','ranks':'3'}", "3");
    ask_stacks(f, "{'do':'stacks'}", &all);
    ask_stacks(f, "{'do':'stacks','ranks':'0,2'}", &some);
    answer_states(&agents, 0);
    assert_null(all);
    answer_states(&agents, 1);
    const char *nothing = "{'stacks':[],'text':'','missing':null,'remarks':null,'odd':null}";
    expect_json(all, nothing);
    expect_json(some, nothing);
    assert_int_equal(agents.asked[0], 1); /* they share a look */
    ask_stacks(f, "{'do':'stacks'}", &all);
    ask_stacks(f, "{'do':'stacks','native':true}", &late);
    agents_hear(&agents);
    assert_int_equal(agents.asked[0], 3);
    stacks_request_part.close(&f->job);
    expect_json(all, "{'error':'the job has ended'}");
    expect_json(late, "{'error':'the job has ended'}");
    agents_end(&agents);
}

static void test_stacks_of_nobody(void **state)
{
    struct fixture *f = *state;
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, false, 0, 6 * SECOND);
    assert_int_equal(stacks_request_part.open(&f->job, NULL), 0);
    expect_error(f, "{'do':'stacks'}", "no rank runs");
    stacks_request_part.close(&f->job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_parts_do_not_answer_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(test_status, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hosts_of_a_static_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hosts_of_an_elastic_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stacks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stacks_of_nobody, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
