/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the agents of hosts a and b: which answers count, who waits, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/ask_fixture.h"

#define LONG_MS 600000

struct bench {
    struct fixture *f;
    struct agents agents;
    int calls; /* of `done` */
    size_t asked, kept;
    char missing[64];
    const void *forgets;     /* by `done`, or by take_piece() */
    ProtobufCMessage *taken; /* by take_piece() */
    int pieces;              /* that it has seen */
    struct ask *widened;     /* by take_and_ask() */
};

/* Small limits, and each question for itself. */
static const struct topic in_pieces = {"pieces",
                                       TOPIC_evidence,
                                       &hvdrun__evidence_request__descriptor,
                                       &hvdrun__evidence_file__descriptor,
                                       TOPIC_ANEW,
                                       3,
                                       20};
static const struct question kept = {&topic_states, NULL, .keep = true};
static const struct question fresh = {&topic_usage, NULL, .keep = false};

static struct bench *bench_of(struct job *job)
{
    return job->kind_data;
}

static int take_piece(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    struct bench *bench = bench_of(job);
    const Hvdrun__EvidenceFile *file = (const Hvdrun__EvidenceFile *)*answer;
    (void)node;
    bench->pieces++;
    if (bench->forgets != NULL)
        ask_forget(job, bench->forgets);
    if (file->kind == 7) {
        bench->taken = *answer;
        *answer = NULL;
    }
    return file->kind == 9 ? -1 : 0;
}

static const struct question pieces = {&in_pieces, take_piece, .keep = false};

/* The first answer is a reason to ask another host. */
static int take_and_ask(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    (void)answer;
    for (int i = 0; i < 20 && node->index == 0; i++)
        ask_node(bench_of(job)->widened, job->nodes[1], NULL);
    return 0;
}

static const struct question widening = {&in_pieces, take_and_ask, .keep = true};

static int begin(void **state)
{
    static struct bench bench;
    if (setup(state) < 0)
        return -1;
    bench = (struct bench){.f = *state};
    bench.f->job.kind_data = &bench;
    agents_begin(&bench.agents, bench.f);
    agents_connect(&bench.agents, 0);
    agents_connect(&bench.agents, 1);
    *state = &bench;
    return 0;
}

static int end(void **state)
{
    struct bench *bench = *state;
    agents_end(&bench->agents);
    *state = bench->f;
    return teardown(state);
}

static void over(void *context, const struct ask *ask)
{
    struct bench *bench = context;
    struct buf missing AUTO_BUF = BUF_INIT(1000);
    bench->calls++;
    bench->asked = ask->count;
    bench->kept = 0;
    for (size_t i = 0; i < ask->count; i++)
        bench->kept += ask->answers[i].message != NULL;
    ask_missing(ask, &missing);
    snprintf(bench->missing, sizeof(bench->missing), "%s", buf_text(&missing));
}

static void wait_over(struct bench *bench, int calls)
{
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    while (bench->calls < calls && !unit_is_over(limit))
        run_turns(bench->f->job.loop, 1);
    assert_int_equal(bench->calls, calls);
}

static bool ask_about(struct bench *bench, const struct question *question, int64_t limit_ms)
{
    return ask_all(&bench->f->job, question, NULL, limit_ms, over, bench);
}

static int say_file(struct bench *bench, int number, uint32_t kind, size_t length, bool more)
{
    Hvdrun__EvidenceFile file = HVDRUN__EVIDENCE_FILE__INIT;
    static uint8_t bytes[100];
    file.kind = kind;
    file.data = (ProtobufCBinaryData){length, bytes};
    ProtobufCBinaryData packed = message_pack(&file.base);
    agents_hear(&bench->agents);
    int result = agents_say(&bench->agents, number, bench->agents.questions[number], packed, more);
    free(packed.data);
    return result;
}

static void test_all_answer(void **state)
{
    struct bench *bench = *state;
    assert_true(ask_about(bench, &kept, LONG_MS));
    assert_true(ask_is_open(&bench->f->job, &topic_states));
    assert_int_equal(agents_answer(&bench->agents, 1, NULL), 0);
    assert_int_equal(bench->calls, 0);
    assert_int_equal(agents_answer(&bench->agents, 0, NULL), 0);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(bench->asked, 2);
    assert_int_equal(bench->kept, 2);
    assert_string_equal(bench->missing, "");
    assert_int_equal(bench->agents.topics[0], TOPIC_states);
    assert_false(ask_is_open(&bench->f->job, &topic_states));
}

static void test_one_is_silent(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &kept, 50);
    assert_int_equal(agents_answer(&bench->agents, 0, NULL), 0);
    wait_over(bench, 1);
    assert_string_equal(bench->missing, "b");
    assert_int_equal(bench->kept, 1);
    assert_int_equal(agents_answer(&bench->agents, 1, NULL), 0); /* late */
    assert_int_equal(bench->calls, 1);
}

static void test_nobody_can_answer(void **state)
{
    struct bench *bench = *state;
    bench->f->job.nodes[0]->state = NODE_CLOSING;
    agents_disconnect(&bench->agents, 1);
    assert_true(ask_about(bench, &kept, LONG_MS));
    assert_int_equal(bench->calls, 0); /* from the loop */
    wait_over(bench, 1);
    assert_int_equal(bench->asked, 0);
}

static void test_repeated(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &kept, LONG_MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(agents_answer(&bench->agents, 0, NULL), 0);
    assert_int_equal(bench->calls, 0); /* b still owes its answer */
}

static void test_unasked(void **state)
{
    struct bench *bench = *state;
    const ProtobufCBinaryData broken = {1, (uint8_t *)"\377"};
    assert_int_equal(agents_say(&bench->agents, 0, 0, broken, false), 0);
    assert_int_equal(agents_say(&bench->agents, 0, 99, broken, true), 0);
    ask_about(bench, &kept, LONG_MS);
    assert_int_equal(agents_say(&bench->agents, 0, 99, broken, false), 0);
    assert_int_equal(bench->calls, 0);
}

/* Only a was asked. */
static void test_the_answer_of_another_host(void **state)
{
    struct bench *bench = *state;
    struct ask *ask = ask_begin(&bench->f->job, &kept, LONG_MS, over, bench);
    ask_node(ask, bench->f->job.nodes[0], NULL);
    agents_hear(&bench->agents);
    assert_int_equal(bench->agents.asked[1], 0);
    const ProtobufCBinaryData nothing = {0};
    assert_int_equal(agents_say(&bench->agents, 1, bench->agents.questions[0], nothing, false), 0);
    assert_int_equal(bench->calls, 0);
    assert_int_equal(agents_answer(&bench->agents, 0, NULL), 0);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(bench->asked, 1);
}

/* Nobody waits for a host that has been lost, or whose agent leaves. */
static void test_a_host_that_cannot_answer(void **state)
{
    struct bench *bench = *state;
    bench->f->job.nodes[1]->state = NODE_CLOSING;
    for (int i = 1; i <= 2; i++) {
        struct ask *ask = ask_begin(&bench->f->job, &kept, LONG_MS, over, bench);
        ask_node(ask, bench->f->job.nodes[1], NULL);
        ask_node(ask, bench->f->job.nodes[0], NULL);
        assert_int_equal(agents_answer(&bench->agents, 0, NULL), 0);
        assert_int_equal(bench->calls, i);
        assert_int_equal(bench->asked, 1);
        agents_disconnect(&bench->agents, 1);
        bench->f->job.nodes[1]->state = NODE_UP;
    }
}

/* Hosts are found in whatever order they were asked. */
static void test_any_order(void **state)
{
    struct bench *bench = *state;
    struct ask *ask = ask_begin(&bench->f->job, &kept, LONG_MS, over, bench);
    ask_node(ask, bench->f->job.nodes[1], NULL);
    ask_node(ask, bench->f->job.nodes[0], NULL);
    assert_int_equal(agents_answer(&bench->agents, 0, NULL), 0);
    assert_int_equal(agents_answer(&bench->agents, 1, NULL), 0);
    assert_int_equal(bench->calls, 1);
}

static void test_nobody_is_asked(void **state)
{
    struct bench *bench = *state;
    ask_begin(&bench->f->job, &kept, LONG_MS, over, bench);
    wait_over(bench, 1);
    assert_int_equal(bench->asked, 0);
}

static void test_a_host_is_lost(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &kept, LONG_MS);
    agents_answer(&bench->agents, 0, NULL);
    asks_part.node_closed(&bench->f->job, bench->f->job.nodes[0]); /* its answer has come */
    assert_int_equal(bench->calls, 0);
    asks_part.node_closed(&bench->f->job, bench->f->job.nodes[1]);
    assert_int_equal(bench->calls, 0); /* not from within */
    wait_over(bench, 1);
    assert_int_equal(bench->kept, 1);
    assert_string_equal(bench->missing, "b");
    asks_part.node_closed(&bench->f->job, bench->f->job.nodes[1]);
}

static void test_broken(void **state)
{
    struct bench *bench = *state;
    const ProtobufCBinaryData broken = {1, (uint8_t *)"\377"}, nothing = {0};
    ask_about(bench, &kept, LONG_MS);
    agents_hear(&bench->agents);
    uint32_t question = bench->agents.questions[0];
    assert_int_equal(agents_say(&bench->agents, 0, question, broken, false), -1);
    assert_int_equal(agents_say(&bench->agents, 0, question, nothing, true), -1); /* no pieces */
}

static void test_pieces(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &pieces, LONG_MS);
    assert_false(ask_has_begun(&bench->f->job, &in_pieces));
    assert_int_equal(say_file(bench, 0, 7, 1, true), 0);
    assert_true(ask_has_begun(&bench->f->job, &in_pieces));
    assert_non_null(bench->taken); /* it lives on */
    message_free(bench->taken);
    assert_int_equal(say_file(bench, 0, 1, 1, false), 0);
    assert_false(ask_has_begun(&bench->f->job, &in_pieces));
    assert_int_equal(say_file(bench, 0, 1, 1, true), 0); /* behind the last one */
    assert_int_equal(bench->pieces, 2);
    assert_int_equal(say_file(bench, 1, 1, 1, false), 0);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(bench->kept, 0);
    assert_string_equal(bench->missing, "");
}

static void test_too_many_pieces(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &pieces, LONG_MS);
    assert_int_equal(say_file(bench, 0, 1, 1, true), 0);
    assert_int_equal(say_file(bench, 0, 1, 1, true), 0);
    assert_int_equal(say_file(bench, 1, 1, 1, true), 0);
    assert_int_equal(say_file(bench, 0, 1, 1, true), -1); /* the third must be the last */
    assert_int_equal(say_file(bench, 0, 1, 1, true), -1);
    assert_int_equal(bench->pieces, 3);
}

static void test_too_many_bytes(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &pieces, LONG_MS);
    assert_int_equal(say_file(bench, 0, 1, 10, true), 0);
    assert_int_equal(say_file(bench, 0, 1, 10, true), -1);
    assert_int_equal(say_file(bench, 1, 1, 50, false), -1);
    assert_int_equal(bench->pieces, 1);
}

/* Whoever takes an answer may find it wrong: then the host has not answered. */
static void test_a_wrong_answer(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &pieces, LONG_MS);
    assert_int_equal(say_file(bench, 1, 1, 1, false), 0);
    assert_int_equal(say_file(bench, 0, 9, 1, false), -1);
    wait_over(bench, 1);
    assert_string_equal(bench->missing, "a");
}

static void test_what_takes_it_asks_others(void **state)
{
    struct bench *bench = *state;
    bench->widened = ask_begin(&bench->f->job, &widening, LONG_MS, over, bench);
    ask_node(bench->widened, bench->f->job.nodes[0], NULL);
    ask_node(bench->widened, bench->f->job.nodes[1], NULL);
    assert_int_equal(say_file(bench, 0, 1, 1, false), 0);
    assert_non_null(bench->widened->answers[0].message);
    assert_int_equal(bench->widened->count, 22);
}

/* It is not awaited for the rest. */
static void test_a_wrong_piece(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &pieces, LONG_MS);
    assert_int_equal(say_file(bench, 1, 1, 1, false), 0);
    assert_int_equal(say_file(bench, 0, 9, 1, true), -1);
    assert_int_equal(bench->calls, 1);
    assert_string_equal(bench->missing, "a");
}

static void test_questions_are_shared(void **state)
{
    struct bench *bench = *state;
    struct bench other = {0};
    Hvdrun__StateRequest native = HVDRUN__STATE_REQUEST__INIT;
    native.depth = 1;
    ask_about(bench, &kept, LONG_MS);
    ask_about(bench, &kept, LONG_MS); /* waits only once */
    ask_all(&bench->f->job, &kept, NULL, LONG_MS, over, &other);
    agents_hear(&bench->agents);
    assert_int_equal(bench->agents.asked[0], 1);
    ask_all(&bench->f->job, &kept, &native.base, LONG_MS, NULL, NULL); /* is another question */
    ask_forget(&bench->f->job, &other);
    uint32_t first = bench->agents.questions[0];
    agents_hear(&bench->agents);
    assert_int_equal(bench->agents.asked[0], 2);
    const ProtobufCBinaryData nothing = {0};
    agents_say(&bench->agents, 0, first, nothing, false);
    agents_say(&bench->agents, 1, first, nothing, false);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(other.calls, 0);
    assert_true(ask_is_open(&bench->f->job, &topic_states)); /* the other one */
}

static void test_pulses_are_not_shared(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &pieces, LONG_MS);
    ask_about(bench, &pieces, LONG_MS);
    agents_hear(&bench->agents);
    assert_int_equal(bench->agents.asked[0], 2);
}

static void test_fresh_answers(void **state)
{
    struct bench *bench = *state;
    unit_clock_stop((int64_t)1000 * SECOND, SECOND);
    assert_int_equal(ask_age_ms(&bench->f->job, &topic_usage), -1);
    assert_true(ask_about(bench, &fresh, LONG_MS));
    assert_true(ask_about(bench, &fresh, LONG_MS)); /* shares it */
    agents_answer(&bench->agents, 0, NULL);
    agents_answer(&bench->agents, 1, NULL);
    assert_int_equal(bench->calls, 1);
    int64_t ns = (int64_t)topic_usage.fresh_ms * 1000000;
    unit_clock_stop((int64_t)1000 * SECOND + ns - 1000000, SECOND);
    assert_int_equal(ask_age_ms(&bench->f->job, &topic_usage), topic_usage.fresh_ms - 1);
    assert_false(ask_about(bench, &fresh, LONG_MS));
    unit_clock_stop((int64_t)1000 * SECOND + ns, SECOND);
    assert_true(ask_about(bench, &fresh, LONG_MS));
    unit_clock_run();
    agents_hear(&bench->agents);
    assert_int_equal(bench->agents.asked[0], 2);
}

/* A shared question goes on without its askers; another one is over with the last of them. */
static void test_askers_go_away(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &kept, LONG_MS);
    ask_about(bench, &pieces, LONG_MS);
    ask_all(&bench->f->job, &pieces, NULL, LONG_MS, NULL, NULL); /* nobody ever waited for it */
    agents_hear(&bench->agents);
    ask_forget(&bench->f->job, &bench->calls); /* nobody */
    ask_forget(&bench->f->job, bench);
    assert_true(ask_is_open(&bench->f->job, &topic_states));
    assert_true(ask_is_open(&bench->f->job, &in_pieces));
    assert_int_equal(say_file(bench, 0, 1, 1, false), 0);
    assert_int_equal(say_file(bench, 1, 1, 1, false), 0);
    assert_false(ask_is_open(&bench->f->job, &in_pieces));
    assert_int_equal(bench->pieces, 2);
    assert_int_equal(bench->calls, 0);
}

static void test_forgotten_by_what_takes_it(void **state)
{
    struct bench *bench = *state;
    bench->forgets = bench;
    ask_about(bench, &pieces, LONG_MS);
    assert_int_equal(say_file(bench, 0, 1, 1, false), 0);
    assert_false(ask_is_open(&bench->f->job, &in_pieces));
    assert_int_equal(say_file(bench, 1, 1, 1, false), 0); /* nobody wants it any more */
    assert_int_equal(bench->pieces, 1);
}

static void forget_other(void *context, const struct ask *ask)
{
    struct bench *bench = context;
    over(bench, ask);
    ask_forget(&bench->f->job, bench->forgets);
    ask_forget(&bench->f->job, bench); /* it has been called */
}

static void test_forgotten_by_another(void **state)
{
    struct bench *bench = *state;
    struct bench other = {0};
    bench->forgets = &other;
    ask_all(&bench->f->job, &kept, NULL, LONG_MS, forget_other, bench);
    ask_all(&bench->f->job, &kept, NULL, LONG_MS, over, &other);
    agents_answer(&bench->agents, 0, NULL);
    agents_answer(&bench->agents, 1, NULL);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(other.calls, 0);
}

static void ask_again(void *context, const struct ask *ask)
{
    struct bench *bench = context;
    over(bench, ask);
    if (bench->calls == 1)
        assert_true(ask_all(&bench->f->job, &kept, NULL, LONG_MS, ask_again, bench));
}

static void test_asked_again_by_done(void **state)
{
    struct bench *bench = *state;
    ask_all(&bench->f->job, &kept, NULL, LONG_MS, ask_again, bench);
    for (int i = 1; i <= 2; i++) {
        agents_answer(&bench->agents, 0, NULL);
        agents_answer(&bench->agents, 1, NULL);
        assert_int_equal(bench->calls, i);
    }
    assert_int_equal(bench->agents.asked[0], 2); /* it is a question of its own */
    assert_false(ask_is_open(&bench->f->job, &topic_states));
}

static void test_the_end_of_the_job(void **state)
{
    struct bench *bench = *state;
    ask_about(bench, &kept, LONG_MS);
    agents_answer(&bench->agents, 0, NULL); /* is kept, and freed with the rest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_answer, begin, end),
        cmocka_unit_test_setup_teardown(test_one_is_silent, begin, end),
        cmocka_unit_test_setup_teardown(test_nobody_can_answer, begin, end),
        cmocka_unit_test_setup_teardown(test_repeated, begin, end),
        cmocka_unit_test_setup_teardown(test_unasked, begin, end),
        cmocka_unit_test_setup_teardown(test_the_answer_of_another_host, begin, end),
        cmocka_unit_test_setup_teardown(test_a_host_that_cannot_answer, begin, end),
        cmocka_unit_test_setup_teardown(test_any_order, begin, end),
        cmocka_unit_test_setup_teardown(test_nobody_is_asked, begin, end),
        cmocka_unit_test_setup_teardown(test_a_host_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(test_broken, begin, end),
        cmocka_unit_test_setup_teardown(test_pieces, begin, end),
        cmocka_unit_test_setup_teardown(test_too_many_pieces, begin, end),
        cmocka_unit_test_setup_teardown(test_too_many_bytes, begin, end),
        cmocka_unit_test_setup_teardown(test_a_wrong_answer, begin, end),
        cmocka_unit_test_setup_teardown(test_a_wrong_piece, begin, end),
        cmocka_unit_test_setup_teardown(test_what_takes_it_asks_others, begin, end),
        cmocka_unit_test_setup_teardown(test_questions_are_shared, begin, end),
        cmocka_unit_test_setup_teardown(test_pulses_are_not_shared, begin, end),
        cmocka_unit_test_setup_teardown(test_fresh_answers, begin, end),
        cmocka_unit_test_setup_teardown(test_askers_go_away, begin, end),
        cmocka_unit_test_setup_teardown(test_forgotten_by_what_takes_it, begin, end),
        cmocka_unit_test_setup_teardown(test_forgotten_by_another, begin, end),
        cmocka_unit_test_setup_teardown(test_asked_again_by_done, begin, end),
        cmocka_unit_test_setup_teardown(test_the_end_of_the_job, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
