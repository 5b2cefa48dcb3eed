/* SPDX-License-Identifier: Apache-2.0 */
/* The list of topics: each has a number of its own, and can be answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/topic.h"

#define POINTER(name, ...) &topic_##name,
static const struct topic *const topics[] = {TOPIC_LIST(POINTER)};

static void test_the_list(void **state)
{
    (void)state;
    bool seen[TOPICS] = {true}; /* 0 is none */
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        const struct topic *topic = topics[i];
        assert_true(topic->number < TOPICS);
        assert_false(seen[topic->number]);
        seen[topic->number] = true;
        assert_true(topic->name[0] != '\0');
        assert_non_null(topic->request);
        assert_non_null(topic->answer);
        assert_true(topic->fresh_ms >= TOPIC_ANEW);
        assert_true(topic->pieces >= 1 && topic->bytes > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
