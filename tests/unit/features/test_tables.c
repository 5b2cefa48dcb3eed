/* SPDX-License-Identifier: Apache-2.0 */
/* With all features: each topic has its answer, and each feature is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "agent/part.h"
#include "base/buf.h"
#include "cli/features.h"
#include "driver/job/part.h"

/* One part answers it, and no other. */
static void test_each_topic_has_an_answer(void **state)
{
    static const struct topic *const topics[] = {
#define TOPIC_POINTER(name, ...) &topic_##name,
        TOPIC_LIST(TOPIC_POINTER)
#undef TOPIC_POINTER
    };
    static const struct agent_part *const parts[] = {
#define PART(name) &name##_agent_part,
#include "agent/part_list.def"
    };
    (void)state;
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        Hvdrun__Ask message = HVDRUN__ASK__INIT;
        int answers = 0;
        message.topic = topics[i]->number;
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
            answers += parts[k]->topics != NULL && asked_rule(parts[k]->topics, &message) != NULL;
        assert_int_equal(answers, 1);
    }
}

static void test_two_parts_of_an_agent_do_not_take_the_same_frames(void **state)
{
    static const struct agent_part *const parts[] = {
#define PART(name) &name##_agent_part,
#include "agent/part_list.def"
    };
    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const struct agent_order *order = parts[i]->orders;
        for (; order != NULL && order->type != 0; order++)
            assert_ptr_equal(agent_parts_order((uint8_t)order->type), order);
    }
}

static void test_two_parts_do_not_take_the_same_frames(void **state)
{
    const char *taken[FRAME_TYPES] = {NULL};
    (void)state;
    for (int i = 0; i < PART_COUNT; i++) {
        const struct part_frame *frame = driver_parts[i]->frames;
        for (; frame != NULL && frame->type != 0; frame++) {
            assert_null(taken[frame->type]);
            taken[frame->type] = driver_parts[i]->name;
        }
    }
}

/* Several questions may be under way, and an answer may have pieces. */
static void test_answers_of_an_agent(void **state)
{
    (void)state;
    struct fake_driver driver;
    Hvdrun__EvidenceRequest request = HVDRUN__EVIDENCE_REQUEST__INIT;
    fake_open(&driver);
    fake_ask(&driver, &topic_pulse, 1, NULL);
    message_free(fake_answer(&driver, &topic_pulse, 1, 0, false));
    fake_ask(&driver, &topic_evidence, 2, &request.base);
    Hvdrun__Evidence *facts = (Hvdrun__Evidence *)fake_answer(&driver, &topic_evidence, 2, 0, true);
    assert_true(facts->n_items > 0);
    assert_null(facts->file);
    hvdrun__evidence__free_unpacked(facts, NULL);
    Hvdrun__Evidence *last = (Hvdrun__Evidence *)fake_answer(&driver, &topic_evidence, 2, 0, false);
    assert_int_equal(last->n_items, 0);
    assert_non_null(last->file); /* what is known of the GPUs, if anything */
    hvdrun__evidence__free_unpacked(last, NULL);
    fake_send(&driver, FRAME_EPOCH, 5, NULL);
    fake_ask(&driver, &topic_states, 3, NULL);
    message_free(fake_answer(&driver, &topic_states, 3, 5, false));
    fake_quit(&driver);
}

/* The link ends while answers are being made: they go nowhere. */
static void test_the_link_ends(void **state)
{
    (void)state;
    struct fake_driver driver;
    fake_open(&driver);
    for (uint32_t i = 1; i < 20; i++) {
        fake_ask(&driver, &topic_states, i, NULL);
        fake_ask(&driver, &topic_usage, 100 + i, NULL);
        fake_ask(&driver, &topic_evidence, 200 + i, NULL);
    }
    fake_settle(&driver);
    fake_quit(&driver);
}

static void test_all_features_are_there(void **state)
{
    struct buf text AUTO_BUF = BUF_INIT(10000);
    (void)state;
    features_text(&text);
    assert_non_null(strstr(buf_text(&text), "[X] check: "));
    assert_null(strstr(buf_text(&text), "[ ]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_topic_has_an_answer),
        cmocka_unit_test(test_two_parts_do_not_take_the_same_frames),
        cmocka_unit_test(test_two_parts_of_an_agent_do_not_take_the_same_frames),
        cmocka_unit_test(test_answers_of_an_agent),
        cmocka_unit_test(test_the_link_ends),
        cmocka_unit_test(test_all_features_are_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
