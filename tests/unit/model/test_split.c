/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"

struct case_ {
    const char *text;
    const char *words[5];
};

static void texts_become_words(void **state)
{
    (void)state;
    static const struct case_ cases[] = {
        {"probe", {"probe"}},
        {"  a\tb \n c ", {"a", "b", "c"}},
        {"a 'b c' \"d e\"", {"a", "b c", "d e"}},
        {"a\\ b 'c'\"d\"e", {"a b", "cde"}},
        {"'' ''", {NULL}},
        {"a ''", {"a", ""}},
        {"\"a\\\"b\" '\\'", {"a\"b", "\\"}},
        {"$HOME `x` *", {"$HOME", "`x`", "*"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_STRV struct strv words = STRV_INIT;
        struct error err = ERROR_INIT;
        if (cases[i].words[0] == NULL) {
            assert_int_equal(words_split(cases[i].text, &words, &err), -1);
            continue;
        }
        assert_int_equal(words_split(cases[i].text, &words, &err), 0);
        size_t count = 0;
        for (; cases[i].words[count] != NULL; count++)
            assert_string_equal(words.items[count], cases[i].words[count]);
        assert_int_equal(words.count, count);
    }
}

static void what_has_no_end_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "  ", "'", "a 'b", "a \"b\\\"", "a\\", "''"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        AUTO_STRV struct strv words = STRV_INIT;
        struct error err = ERROR_INIT;
        assert_int_equal(words_split(bad[i], &words, &err), -1);
        assert_int_equal(err.status, STATUS_USAGE);
        assert_true(err.text[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_words),
        cmocka_unit_test(what_has_no_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
