/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_fixture.h"

#include "cli/spelling.h"
#include "model/settings/suggest.h"

static void expect_hint(const char *typed, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(512);
    struct suggest suggest;
    spelling_near(typed, strlen(typed), &suggest);
    suggest_append(&suggest, &text);
    if (strcmp(buf_text(&text), expected) != 0)
        fail_msg("%s: '%s', expected '%s'", typed, buf_text(&text), expected);
}

static void test_options(void **state)
{
    (void)state;
    expect_hint("--num-procs", ": did you mean '--num-proc'?");
    expect_hint("--hostflie", ": did you mean '--hostfile'?");
    expect_hint("--fusion", ": did you mean '--fusion-threshold-mb'?");
    expect_hint("--fusion-threshold", ": did you mean '--fusion-threshold-mb'?");
    expect_hint("-hosts", ": did you mean '--hosts'?");
    expect_hint("-np4", ": did you mean '-np'?");
    expect_hint("--no-autotunes", ": did you mean '--no-autotune'?");
    expect_hint("--glo", ": did you mean '--gloo'?");
    expect_hint("--nothing-like-it-at-all", "");
    expect_hint("--", "");
    expect_hint("-z", "");
    expect_hint("", "");
}

static void test_long_words(void **state)
{
    (void)state;
    char word[500];
    struct suggest suggest;
    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    suggest_init(&suggest, word, sizeof(word) - 1);
    suggest_offer(&suggest, word);
    suggest_offer(&suggest, "short");
    assert_null(suggest_best(&suggest));
    suggest_offer(&suggest, suggest.typed);
    assert_string_equal(suggest_best(&suggest), suggest.typed);
}

static void test_distance(void **state)
{
    (void)state;
    struct suggest suggest;
    suggest_init(&suggest, "timeuot", 7);
    suggest_offer(&suggest, "grace");
    assert_null(suggest_best(&suggest));
    suggest_offer(&suggest, "timeout");
    assert_string_equal(suggest_best(&suggest), "timeout");
    assert_int_equal(suggest.distance, 1);
    suggest_offer(&suggest, "timeuots"); /* no nearer: the first stays */
    assert_string_equal(suggest_best(&suggest), "timeout");
    suggest_init(&suggest, "xxx", 3);
    suggest_offer(&suggest, "abc");
    assert_null(suggest_best(&suggest));
}

struct seen {
    struct strv words;
    size_t twice;
};

static int remember(void *context, const struct spelling *spelling)
{
    struct seen *seen = context;
    struct spelling found;
    assert_true(spelling->word[0] == '-' && spelling->word[1] != '\0');
    assert_true(
        spelling_find(spelling->word, strlen(spelling->word), spelling->fixed == NULL, &found));
    assert_int_equal(found.id, spelling->id);
    for (size_t i = 0; i < seen->words.count; i++)
        seen->twice += strcmp(seen->words.items[i], spelling->word) == 0;
    strv_add(&seen->words, spelling->word);
    return 0;
}

/* No word stands for two options, but for the bare forms of --color, --colour, --dry-run, --mpi,
 * --stop-at-start and --warm. */
static void test_spellings_are_unique(void **state)
{
    (void)state;
    struct seen seen = {.twice = 0};
    assert_int_equal(spelling_each(remember, &seen), 0);
    assert_int_equal(seen.twice, 6);
    strv_destroy(&seen.words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_spellings_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
