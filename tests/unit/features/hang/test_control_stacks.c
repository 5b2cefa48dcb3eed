/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/hang/stacks_cli.h"

/* Ranks 0 and 1 stay, rank 2 moves, rank 3 is new, rank 4 has gone. Other threads do not count. */
static const char first[] =
    "{\"stacks\": [{\"ranks\": [0, 1, 4], \"thread\": \"main\", \"frames\": [{\"line\": 1}]},"
    " {\"ranks\": [2], \"thread\": \"main\", \"frames\": [{\"line\": 7}]},"
    " {\"ranks\": [0], \"thread\": \"other\", \"frames\": [{\"line\": 9}]}], \"text\": \"old\\n\"}";
static const char second[] =
    "{\"stacks\": [{\"ranks\": [0, 2], \"thread\": \"main\", \"frames\": [{\"line\": 1}]},"
    " {\"ranks\": [1, 3], \"thread\": \"main\", \"frames\": [{\"line\": 1}]}],"
    " \"text\": \"new\\u001b[2J\\n\", \"odd\": \"rank 3 is elsewhere\", \"missing\": \"c17\","
    " \"remarks\": \"a: no libdw\\nb\\u001b: no libdw\"}";

static json_t *read_json(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

static void test_compared(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(10000);
    json_t *before = read_json(first), *after = read_json(second);
    json_t *both = control_stacks_compare(before, after, 5);
    json_t *moved = read_json("[2]"), *still = read_json("[0, 1]");
    assert_true(json_equal(json_object_get(both, "moved"), moved));
    assert_true(json_equal(json_object_get(both, "still"), still));
    assert_true(json_equal(json_object_get(both, "first"), before));
    assert_true(json_equal(json_object_get(both, "second"), after));
    control_stacks_text(after, both, &text);
    assert_string_equal(buf_text(&text), "new?[2J\n"
                                         "rank 3 is elsewhere\n"
                                         "no answer about the ranks on c17\n"
                                         "native frames are missing:\n"
                                         "    a: no libdw\n"
                                         "    b?: no libdw\n"
                                         "in another place after 5 s: rank 2\n"
                                         "in the same place after 5 s: ranks 0-1\n");
    json_decref(before);
    json_decref(after);
    json_decref(both);
    json_decref(moved);
    json_decref(still);
}

/* An answer of another version, or of nothing. */
static void test_nonsense(void **state)
{
    (void)state;
    static const char *const answers[] = {"{}", "{\"stacks\": 3, \"text\": []}",
                                          "{\"stacks\": [1, {}, {\"ranks\": [\"x\"]}]}"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(10000);
        json_t *answer = read_json(answers[i]);
        json_t *both = control_stacks_compare(answer, answer, 0.5);
        control_stacks_text(answer, both, &text);
        assert_non_null(strstr(buf_text(&text), "no stacks\n"));
        assert_non_null(strstr(buf_text(&text), "in the same place after 1 s: no rank\n"));
        json_decref(both);
        json_decref(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compared),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
