/* SPDX-License-Identifier: Apache-2.0 */
/* --ranks: whose output the console shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/settings/shown.h"

/* Of the ranks 0 to 5, whose local ranks are 0 to 2 on two hosts: 'b' both streams, 'o' and 'e'
 * one, '-' none. */
static void shows(const char *text, const char *expected)
{
    char got[7] = "";
    struct error err = ERROR_INIT;
    if (text != NULL && shown_check(text, 5, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    for (int rank = 0; rank < 6; rank++) {
        bool out = shown_has(text, rank, rank % 3, 0), error = shown_has(text, rank, rank % 3, 1);
        got[rank] = out && error ? 'b' : out ? 'o' : error ? 'e' : '-';
    }
    if (strcmp(got, expected) != 0)
        fail_msg("%s shows %s, expected %s", text, got, expected);
}

static void test_lists(void **state)
{
    (void)state;
    shows(NULL, "bbbbbb");
    shows("none", "------");
    shows("0,4-5", "b---bb");
    shows("3-", "---bbb");
    shows("l0", "b--b--");
    shows("l1-", "-bb-bb");
    shows("l0-1:stderr", "ee-ee-");
    shows("l0:stderr,0:stdout", "b--e--");
    shows("l0:stderr,l1:stdout,l2-", "eobeob");
}

static void test_refusals(void **state)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "0,",
                                        "x",
                                        "l",
                                        "-1",
                                        "0:out",
                                        "l0:",
                                        "0 ",
                                        "6",
                                        "6-",
                                        "5-4",
                                        "0-6",
                                        "nones",
                                        "0:stdout:stderr",
                                        "l-1",
                                        "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct error err = ERROR_INIT;
        if (shown_check(wrong[i], 5, &err) == 0 || err.text[0] == '\0')
            fail_msg("'%s' was accepted", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
