/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static void the_longest_command(void **state)
{
    (void)state;
    enum { LONGEST = 65536 };
    char *text = malloc(LONGEST + 2);
    memset(text, 'x', LONGEST + 1);
    for (int over = 0; over < 2; over++) {
        AUTO_STRV struct strv words = STRV_INIT;
        struct error err = ERROR_INIT;
        text[LONGEST] = over == 0 ? '\0' : 'x';
        text[LONGEST + 1] = '\0';
        text[7] = ' ';
        assert_int_equal(words_split(text, &words, &err), over == 0 ? 0 : -1);
        if (over != 0)
            assert_non_null(strstr(err.text, "too long"));
        else
            assert_int_equal(strlen(words.items[1]), LONGEST - 8);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_words),
        cmocka_unit_test(what_has_no_end_is_refused),
        cmocka_unit_test(the_longest_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
