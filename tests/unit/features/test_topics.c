/* SPDX-License-Identifier: Apache-2.0 */
/* With all features, each topic has its answer, and each feature is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/part.h"
#include "base/buf.h"
#include "cli/features.h"

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
            answers += asked_rule(parts[k]->topics, &message) != NULL;
        assert_int_equal(answers, 1);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_topic_has_an_answer),
                                       cmocka_unit_test(test_all_features_are_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
