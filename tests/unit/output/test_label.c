/* SPDX-License-Identifier: Apache-2.0 */
/* Label templates and horovodrun's form of the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "output/label.h"

/* 2026-11-01 03:05:59.042 UTC, a Sunday */
#define WHEN (INT64_C(1793502359) * 1000000000 + 42999999)

static const struct label_facts facts = {
    .rank = 12, .local_rank = 3, .host = "node7", .stream = "stderr", .wall_ns = WHEN};

static void expect(const char *template, const char *expected)
{
    struct error err = ERROR_INIT;
    struct label *label = label_compile(template, &err);
    assert_non_null(label);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    label_render(label, &facts, &out);
    assert_string_equal(buf_text(&out), expected);
    label_destroy(label);
}

static void templates(void **state)
{
    (void)state;
    expect(LABEL_DEFAULT, "[12]<stderr>:");
    expect("", "");
    expect("plain", "plain");
    expect("%h:%l %% %r%r|", "node7:3 % 1212|");
    expect("%t ", "2026-11-01 03:05:59.042 ");
}

static void a_rank_that_was_spawned(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct label_facts spawned = facts;
    spawned.world = 2;
    spawned.world_rank = 5;
    struct label *label = label_compile(LABEL_DEFAULT "%l", &err);
    AUTO_BUF struct buf out = BUF_INIT(1 << 10);
    label_render(label, &spawned, &out);
    assert_string_equal(buf_text(&out), "[2.5]<stderr>:3");
    label_destroy(label);
}

static void refuse(const char *template, const char *named)
{
    struct error err = ERROR_INIT;
    assert_null(label_compile(template, &err));
    assert_non_null(strstr(err.text, named));
    assert_null(strchr(err.text, '\n'));
}

static void wrong_templates(void **state)
{
    (void)state;
    refuse("%x", "'%x'");
    refuse("100%", "'%'");
    refuse("%\x01", "'%'");
    refuse("two\nlines", "line break");
    char longest[LABEL_TEMPLATE_MAX + 2];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    refuse(longest, "too long");
}

static void keys(void **state)
{
    (void)state;
    struct label *label = label_compile("%r%%%s", NULL);
    assert_int_equal(label_keys(label), LABEL_RANK | LABEL_STREAM);
    label_destroy(label);
    label = label_compile("%t%h%l", NULL);
    assert_int_equal(label_keys(label), LABEL_TIME | LABEL_HOST | LABEL_LOCAL_RANK);
    label_destroy(label);
    label_destroy(NULL);
}

static void timestamp_as_horovodrun(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(100);
    label_timestamp(WHEN, &out);
    assert_string_equal(buf_text(&out), "Sun Nov  1 03:05:59 2026");
}

static void the_longest_template(void **state)
{
    (void)state;
    char longest[LABEL_TEMPLATE_MAX + 1];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    expect(longest, longest);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates),
        cmocka_unit_test(a_rank_that_was_spawned),
        cmocka_unit_test(wrong_templates),
        cmocka_unit_test(keys),
        cmocka_unit_test(timestamp_as_horovodrun),
        cmocka_unit_test(the_longest_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
