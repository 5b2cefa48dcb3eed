/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a file of bad hosts: what it says, what is wrong with it, and what an update keeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "features/bad_hosts/bad_hosts.h"

#define NOW 1795775585 /* 2026-11-27T10:33:05Z: date -ud @1795775585 */
#define YEAR 31536000

static void parse(const char *text, struct bad_host_list *out)
{
    struct error err = ERROR_INIT;
    if (bad_hosts_parse(text, strlen(text), "bad", NOW, out, &err) < 0)
        fail_msg("'%s' was refused: %s", text, err.text);
}

static void expect_names(const char *text, const char *expected)
{
    struct bad_host_list list = {.count = 0};
    struct buf names AUTO_BUF = BUF_INIT(4096);
    parse(text, &list);
    for (size_t i = 0; i < list.count; i++)
        buf_printf(&names, "%s%s", i > 0 ? " " : "", list.items[i].name);
    assert_string_equal(buf_text(&names), expected);
    bad_hosts_destroy(&list);
}

static void expect_described(const char *text, const char *expected)
{
    struct bad_host_list list = {.count = 0};
    struct buf said AUTO_BUF = BUF_INIT(4096);
    parse(text, &list);
    assert_int_equal(list.count, 1);
    bad_hosts_describe(&list.items[0], &said);
    assert_string_equal(buf_text(&said), expected);
    bad_hosts_destroy(&list);
}

static void expect_refused(const char *text, const char *expected)
{
    struct bad_host_list list = {.count = 0};
    struct error err = ERROR_INIT;
    assert_int_equal(bad_hosts_parse(text, strlen(text), "bad", NOW, &list, &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
    bad_hosts_destroy(&list);
}

static void test_lines(void **state)
{
    (void)state;
    expect_names("", "");
    expect_names("# nothing\n\n  \t\r\n", "");
    expect_names("b\r\n  c\t# by hand", "b c");
    expect_names("b\nb until=2030-01-01\nfe80::1%eth0", "b fe80::1%eth0");
    expect_described("b", "b");
    expect_described("b  lost = often  ", "b (lost = often)");
    expect_described("b job=train", "b (job train)");
    expect_described("b until=2026-12-04 job=a-1 since=2026-11-27T10:33:05Z  the  reason # why",
                     "b (the  reason; job a-1, since 2026-11-27T10:33:05Z)");
    expect_described("b since=2024-02-29 x", "b (x; since 2024-02-29T00:00:00Z)");
    expect_described("b since=1970-01-02T00:00Z", "b (since 1970-01-02T00:00:00Z)");
    expect_described("b since=2100-03-01T23:59Z", "b (since 2100-03-01T23:59:00Z)");
}

static void test_expiry(void **state)
{
    (void)state;
    expect_names("b until=2026-11-27T10:33:05Z", "");
    expect_names("b until=2026-11-27T10:33:06Z", "b");
    expect_names("b until=2026-11-27", "");
    expect_names("b until=2026-11-28", "b");
    expect_names("b since=2001-01-01", "b");
    /* the first that is in force */
    expect_described("b until=2001-01-01 old\nb new", "b (new)");
}

static void test_wrong_lines(void **state)
{
    (void)state;
    expect_refused("a\nb/c\n", "bad:2: 'b/c' is not a host name");
    expect_refused("-rf", "bad:1: '-rf' is not a host name");
    expect_refused("\x7f"
                   "ELF\x01",
                   "bad:1: '?ELF?' is not a host name");
    expect_refused("b utnil=2026-01-01", "bad:1: 'utnil=2026-01-01' is not a key; expected since=, "
                                         "until= or job=, then a reason");
    const char *const wrong[] = {"",
                                 "2026",
                                 "2026-13-01",
                                 "2026-00-01",
                                 "2026-01-32",
                                 "1969-01-01",
                                 "2026-1-1",
                                 "2026-01-01T10:33",
                                 "2026-01-01T24:00Z",
                                 "2026-01-01T10:60Z",
                                 "2026-01-01T10:33:05+01:00",
                                 "2026-01-01Z"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char *line AUTO_FREE = mem_printf("b until=%s", wrong[i]);
        char *said AUTO_FREE = mem_printf(
            "bad:1: 'until=%s' has no time; expected UTC, as in until=2026-11-27T10:33Z", wrong[i]);
        expect_refused(line, said);
    }
    char longest[5000];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    expect_refused(longest, "bad:1: '' is not a line of text");
    struct bad_host_list list = {.count = 0};
    assert_int_equal(bad_hosts_parse("b\0c", 3, "bad", NOW, &list, NULL), -1);
}

static void expect_update(const char *before, const char *name, const char *reason,
                          const char *after)
{
    struct bad_host_list news = {.count = 0};
    struct buf out AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    bad_hosts_add(&news, &(struct bad_host){.name = (char *)name,
                                            .since_s = NOW,
                                            .until_s = NOW + BAD_HOSTS_SECONDS,
                                            .job = (char *)"train",
                                            .reason = (char *)reason});
    assert_int_equal(bad_hosts_update(before, strlen(before), &news, NOW, &out), 0);
    const char *text = buf_text(&out);
    assert_string_equal(before[0] == '\0' ? strstr(text, "\nb ") + 1 : text, after);
    bad_hosts_destroy(&news);
    struct bad_host_list again = {.count = 0};
    bad_hosts_parse(text, out.length, "bad", NOW, &again, NULL);
    assert_int_equal(again.count == 0, strstr(before, "rubbish") != NULL);
    bad_hosts_destroy(&again);
}

#define NEWS "b since=2026-11-27T10:33:05Z until=2026-12-04T10:33:05Z job=train "

static void test_update(void **state)
{
    (void)state;
    expect_update("", "b", "lost twice", NEWS "lost twice\n");
    expect_update("# mine\n\nrubbish=1 / ?\nc by hand", "b", "x",
                  "# mine\n\nrubbish=1 / ?\nc by hand\n" NEWS "x\n");
    expect_update("b until=2026-11-28 old\nc until=2020-01-01 older\nd until=2027-01-01\n", "b",
                  "x", "d until=2027-01-01\n" NEWS "x\n");
    expect_update("b stays out\n", "b", "x", "b stays out\n");
    expect_update("#\n", "b", "a\nb #c\x1b[31m", "#\n" NEWS "a b .c [31m\n");
}

static void test_longest_reason(void **state)
{
    (void)state;
    char reason[1000];
    struct bad_host_list news = {.count = 0}, again = {.count = 0};
    struct buf out AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    memset(reason, 'y', sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    bad_hosts_add(&news, &(struct bad_host){.name = (char *)"b",
                                            .since_s = NOW,
                                            .until_s = NOW + YEAR,
                                            .job = (char *)"two words",
                                            .reason = reason});
    bad_hosts_update("", 0, &news, NOW, &out);
    parse(buf_text(&out), &again);
    assert_int_equal(strlen(again.items[0].reason), BAD_HOSTS_REASON_MAX);
    assert_null(again.items[0].job);
    bad_hosts_destroy(&news);
    bad_hosts_destroy(&again);
}

static void test_oldest_lines_go(void **state)
{
    (void)state;
    struct bad_host_list news = {.count = 0}, again = {.count = 0};
    struct buf before AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    struct buf out AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    buf_puts(&before, "forever\n");
    for (int i = 0; i < BAD_HOSTS_MAX; i++)
        buf_printf(&before, "n%d until=2027-01-01\n", i);
    bad_hosts_add(&news, &(struct bad_host){.name = (char *)"b", .until_s = NOW + YEAR});
    assert_int_equal(bad_hosts_update(buf_text(&before), before.length, &news, NOW, &out), 0);
    parse(buf_text(&out), &again);
    assert_int_equal(again.count, BAD_HOSTS_MAX + 1);
    assert_non_null(bad_hosts_find(&again, "forever"));
    assert_null(bad_hosts_find(&again, "n0"));
    assert_non_null(bad_hosts_find(&again, "n1"));
    assert_non_null(bad_hosts_find(&again, "b"));
    bad_hosts_destroy(&news);
    bad_hosts_destroy(&again);
}

/* What does not fit is an error: the caller keeps the old file. */
static void test_no_room(void **state)
{
    (void)state;
    static const char before[] = "forever\n";
    struct bad_host_list news = {.count = 0};
    struct buf whole AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    bad_hosts_add(&news, &(struct bad_host){.name = (char *)"b",
                                            .since_s = NOW,
                                            .until_s = NOW + YEAR,
                                            .job = (char *)"train",
                                            .reason = (char *)"lost"});
    assert_int_equal(bad_hosts_update(before, strlen(before), &news, NOW, &whole), 0);
    for (size_t limit = 1; limit <= whole.length; limit++) {
        struct buf out AUTO_BUF = BUF_INIT(limit);
        int result = bad_hosts_update(before, strlen(before), &news, NOW, &out);
        assert_int_equal(result, limit < whole.length ? -1 : 0);
    }
    bad_hosts_destroy(&news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),          cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_wrong_lines),    cmocka_unit_test(test_update),
        cmocka_unit_test(test_longest_reason), cmocka_unit_test(test_oldest_lines_go),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
