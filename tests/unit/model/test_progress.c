/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/progress/progress.h"

static struct progress parsed(const char *text)
{
    struct progress progress = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    if (progress_parse(text, strlen(text), true, &progress, &err) < 0)
        fail_msg("'%s': %s", text, err.text);
    return progress;
}

static void expect(const char *text, double percent, double eta_s, const char *said)
{
    struct progress progress = parsed(text);
    assert_true(progress.percent >= percent && progress.percent <= percent);
    assert_true(progress.eta_s >= eta_s && progress.eta_s <= eta_s);
    if (said == NULL)
        assert_null(progress.text);
    else
        assert_string_equal(progress.text, said);
    progress_clear(&progress);
}

static void refused(const char *bytes, size_t length, bool whole)
{
    struct progress progress = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    if (progress_parse(bytes, length, whole, &progress, &err) == 0)
        fail_msg("not refused: '%.*s'", (int)length, bytes);
    assert_true(err.text[0] != '\0');
    progress_clear(&progress);
}

static void test_lines(void **state)
{
    (void)state;
    expect("42\n", 42, -1, NULL);
    expect("42.5 360 epoch 3 of 7, loss 0.41\n", 42.5, 360, "epoch 3 of 7, loss 0.41");
    expect("  7%\t- 3 of 7\r\n", 7, -1, "3 of 7");
    expect("0 0", 0, 0, NULL);
    expect("100 nearly", 100, -1, "nearly");
    expect("1 2 3", 1, 2, "3");
    expect("5 1e3 text", 5, -1, "1e3 text"); /* not as people write seconds */
    expect("5 60s left", 5, -1, "60s left");
    expect("5 9999999999 text", 5, -1, "9999999999 text");
}

static void test_the_last_line_counts(void **state)
{
    (void)state;
    expect("1\n2\n3\n\n", 3, -1, NULL);
    expect("rubbish\n50 half", 50, -1, "half");
    expect("nd of a line that was cut\n50 1 half\n", 50, 1, "half");
}

static void test_what_is_not_a_progress(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",  "\n", " \n\n", "abc",    "-1",  "101",  "nan", "inf",  "0x10", "1e1",
        "%", ".",  "1.2.3", "5 6\n-", "50,", "99%%", "+5",  "1000", "5x 3", "100.00001"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refused(texts[i], strlen(texts[i]), true);
    refused("5\0 6\n", 5, true);
    char line[2 * PROGRESS_LINE_MAX];
    memset(line, '1', sizeof(line));
    refused(line, sizeof(line), true);
    memset(line, ' ', sizeof(line));
    refused(line, sizeof(line), true);
}

/* Somebody may be in the middle of writing. */
static void test_incomplete(void **state)
{
    (void)state;
    struct progress progress = PROGRESS_INIT;
    refused("4", 1, false);
    assert_int_equal(progress_parse("4\n42 5", 6, false, &progress, NULL), 0);
    assert_true(progress.percent < 5);
    progress_clear(&progress);
}

static void test_texts_are_plain(void **state)
{
    (void)state;
    char line[600] = "5 - ";
    expect("5 - a\tb\x1b[31mc\x7f d  \n", 5, -1, "a b [31mc  d");
    expect("5 - caf\xc3\xa9 \xff", 5, -1, "caf\xc3\xa9 ?");
    for (size_t i = 4; i + 3 < sizeof(line) - 1; i += 3)
        memcpy(line + i, "\xe2\x82\xac", 3);
    struct progress progress = parsed(line);
    assert_int_equal(strlen(progress.text), PROGRESS_TEXT_MAX / 3 * 3); /* no character is cut */
    progress_clear(&progress);
}

static void test_metrics(void **state)
{
    (void)state;
    struct progress progress = PROGRESS_INIT, other = PROGRESS_INIT;
    char name[PROGRESS_NAME_MAX + 2] = "";
    assert_true(progress_add_metric(&progress, "loss", "0.25"));
    assert_true(progress_add_metric(&progress, "grad", "nan"));
    assert_true(progress_add_metric(&progress, "loss", "-1.5e-3"));
    assert_int_equal(progress.metric_count, 2);
    assert_string_equal(progress_metric(&progress, "loss"), "-1.5e-3");
    assert_null(progress_metric(&progress, "los"));
    assert_false(progress_add_metric(&progress, "", "1"));
    assert_false(progress_add_metric(&progress, "a b", "1"));
    assert_false(progress_add_metric(&progress, "a\n", "1"));
    assert_false(progress_add_metric(&progress, "x", ""));
    assert_false(progress_add_metric(&progress, "x", "1 2"));
    assert_false(progress_add_metric(&progress, "x", "0x1p3"));
    assert_false(progress_add_metric(&progress, "x", "nothing"));
    assert_false(progress_add_metric(&progress, "x", "000000000000000000000000000000001"));
    memset(name, 'n', PROGRESS_NAME_MAX);
    assert_true(progress_add_metric(&progress, name, "1"));
    name[PROGRESS_NAME_MAX] = 'n';
    assert_false(progress_add_metric(&progress, name, "1"));
    for (int i = 0; i < 2 * PROGRESS_METRICS_MAX; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        progress_add_metric(&progress, name, "1");
    }
    assert_int_equal(progress.metric_count, PROGRESS_METRICS_MAX);
    assert_true(progress_add_metric(&progress, "loss", "2")); /* it is there already */
    progress_move(&other, &progress);
    assert_int_equal(progress.metric_count, 0);
    assert_true(progress.percent < 0);
    assert_string_equal(progress_metric(&other, "loss"), "2");
    progress_clear(&other);
}

static void test_numbers(void **state)
{
    (void)state;
    struct progress progress = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(progress_set_percent(&progress, 100, &err), 0);
    assert_int_equal(progress_set_percent(&progress, -0.1, &err), -1);
    assert_int_equal(progress_set_percent(&progress, 0.0 / (progress.percent - 100), &err), -1);
    assert_true(progress.percent >= 100);
    assert_int_equal(progress_set_eta(&progress, -1, &err), -1);
    assert_int_equal(progress_set_eta(&progress, 2 * PROGRESS_ETA_MAX_S, &err), -1);
    assert_int_equal(progress_set_eta(&progress, 0, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),           cmocka_unit_test(test_the_last_line_counts),
        cmocka_unit_test(test_incomplete),      cmocka_unit_test(test_what_is_not_a_progress),
        cmocka_unit_test(test_texts_are_plain), cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
