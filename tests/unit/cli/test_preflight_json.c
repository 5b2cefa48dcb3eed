/* SPDX-License-Identifier: Apache-2.0 */
/* What --leave-out-bad makes of the result of a check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "cli/place.h"
#include "model/hosts/entry.h"

#define FINDINGS                                                                            \
    "{\"findings\": ["                                                                      \
    "{\"host\": \"a\", \"fatal\": true, \"pair\": true, \"text\": \"cannot reach b\"},"     \
    "{\"host\": \"b\", \"fatal\": true, \"pair\": false, \"text\": \"none can reach it\"}," \
    "{\"host\": \"c\", \"fatal\": false, \"bad\": true, \"text\": \"GPU 1 is lost\"},"      \
    "{\"host\": \"d\", \"fatal\": false, \"bad\": false, \"text\": \"GPU 1 is hot\"},"      \
    "{\"host\": null, \"fatal\": true, \"text\": \"more\"}]}"

/* In another process, whose stdout is the result. */
struct outcome {
    const char *json;
    int status;
};

static int check(void *context, const struct command_line *line, struct error *err)
{
    const struct outcome *outcome = context;
    (void)err;
    assert_true(line->check.wanted && line->check.gpu && line->check.json);
    fputs(outcome->json, stdout);
    fflush(stdout);
    return outcome->status;
}

static int leave_out(struct outcome outcome, struct host_list *hosts, struct buf *told,
                     struct error *err)
{
    static struct command_line line;
    fflush(stdout);
    assert_int_equal(hosts_parse("a,b,c,d", hosts, NULL), 0);
    return preflight_leave_out(&line, check, &outcome, hosts, told, err);
}

static void test_who_is_left_out(void **state)
{
    struct host_list hosts = {.count = 0};
    struct buf told AUTO_BUF = BUF_INIT(1000);
    (void)state;
    assert_int_equal(leave_out((struct outcome){FINDINGS, STATUS_LAUNCHER}, &hosts, &told, NULL),
                     0);
    assert_string_equal(buf_text(&told), "--leave-out-bad leaves out b (none can reach it), "
                                         "c (GPU 1 is lost)");
    assert_int_equal(hosts.count, 2);
    assert_string_equal(hosts.items[0].name, "a"); /* b may be the cause */
    assert_string_equal(hosts.items[1].name, "d");
    hosts_destroy(&hosts);
}

static void test_checks_without_a_result(void **state)
{
    static const struct {
        struct outcome outcome;
        int status;
        const char *text;
    } cases[] = {
        {{FINDINGS, 130}, 130, "the check was ended by signal 2"}, /* it has said what it knew */
        {{"", STATUS_LAUNCHER}, STATUS_LAUNCHER, "gave no result"},
        {{"{\"findings", 0}, STATUS_LAUNCHER, "cannot be read"},
        {{"[]", 0}, STATUS_LAUNCHER, "cannot be read"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct host_list hosts = {.count = 0};
        struct buf told AUTO_BUF = BUF_INIT(1000);
        struct error err = ERROR_INIT;
        assert_int_equal(leave_out(cases[i].outcome, &hosts, &told, &err), -1);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.text, cases[i].text));
        assert_int_equal(hosts.count, 4);
        hosts_destroy(&hosts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_left_out),
        cmocka_unit_test(test_checks_without_a_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
