/* SPDX-License-Identifier: Apache-2.0 */
/* How an agent takes questions: each goes to its topic, and a wrong one is a breach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "agent/part.h"

struct bench {
    struct asked asked; /* the last question */
    int states, pulses;
    bool native;
};

/* Stands for the agent, whose content the rules alone know. */
static struct bench *bench_of(struct agent *agent)
{
    return (struct bench *)agent;
}

static void take_states(struct agent *agent, const struct asked *asked,
                        const ProtobufCMessage *request)
{
    struct bench *bench = bench_of(agent);
    bench->asked = *asked;
    bench->states++;
    bench->native = ((const Hvdrun__StateRequest *)request)->depth == 1;
}

static void take_pulse(struct agent *agent, const struct asked *asked,
                       const ProtobufCMessage *request)
{
    (void)asked, (void)request;
    bench_of(agent)->pulses++;
}

static const struct ask_rule rules[] = {
    {&topic_states, take_states}, {&topic_pulse, take_pulse}, {.topic = NULL}};

static const char *ask(struct bench *bench, uint32_t topic, const char *request, size_t length)
{
    Hvdrun__Ask message = HVDRUN__ASK__INIT;
    message.topic = topic;
    message.question = 5;
    message.request = (ProtobufCBinaryData){length, (uint8_t *)request};
    const struct ask_rule *rule = asked_rule(rules, &message);
    return rule == NULL ? "unknown" : asked_take(rule, (struct agent *)bench, NULL, &message);
}

static void test_each_goes_to_its_topic(void **state)
{
    (void)state;
    struct bench bench = {.states = 0};
    assert_null(ask(&bench, TOPIC_states, "\x10\x01", 2));
    assert_int_equal(bench.asked.number, 5);
    assert_true(bench.native);
    assert_null(ask(&bench, TOPIC_states, "", 0));
    assert_false(bench.native);
    assert_null(ask(&bench, TOPIC_pulse, "", 0));
    assert_int_equal(bench.states, 2);
    assert_int_equal(bench.pulses, 1);
}

static void test_breaches(void **state)
{
    (void)state;
    struct bench bench = {.states = 0};
    assert_non_null(ask(&bench, 0, "", 0));
    assert_non_null(ask(&bench, TOPIC_usage, "", 0)); /* it has no rule here */
    assert_non_null(ask(&bench, UINT32_MAX, "", 0));
    assert_non_null(ask(&bench, TOPIC_states, "\xff", 1));
    assert_int_equal(bench.states + bench.pulses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_goes_to_its_topic),
        cmocka_unit_test(test_breaches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
