/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "model/binding/binding.h"
#include "topology_fixture.h"

/* What `text` gives, as a list of CPUs; "!" and the error when it gives none. */
static void expect(const struct topology *topology, const char *text, const char *list)
{
    struct error err = ERROR_INIT;
    struct cpu_mask mask = {0};
    struct buf found AUTO_BUF = BUF_INIT(1024);
    if (binding_cpus_parse(text, topology, &mask, &err) < 0) {
        assert_int_equal(err.status, STATUS_USAGE);
        assert_non_null(strstr(err.text, text));
        assert_string_equal("!", list);
    } else {
        cpu_mask_list(&mask, &found);
        assert_string_equal(buf_text(&found), list);
    }
    cpu_mask_clear(&mask);
}

/* 2 packages of 2 memory nodes of 2 cores of 2 threads: core i has the CPUs i and i + 8. */
static void test_cores(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, (struct machine){2, 2, 0, 2, 2});
    expect(&topology, "0", "0,8");
    expect(&topology, "7", "7,15");
    expect(&topology, "0000001", "1,9");
    expect(&topology, "0-3", "0-3,8-11");
    expect(&topology, "0-1,6", "0-1,6,8-9,14");
    expect(&topology, "2;4", "2,4,10,12");
    expect(&topology, "*", "0-15");
    expect(&topology, "1:0", "4,12");
    expect(&topology, "1:0-1", "4-5,12-13");
    expect(&topology, "1:0,3", "4,7,12,15");
    expect(&topology, "0:1,1:2", "1,6,9,14");
    expect(&topology, "1:*", "4-7,12-15");
    topology_destroy(&topology);
}

static void test_what_is_no_list(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, (struct machine){2, 2, 0, 2, 2});
    static const char *const wrong[] = {
        "",    "a",  "1,",  ",1", "1-",  "3-1", "1:",  ":1",    "1:2:",
        "0x1", "-1", "1 2", "8",  "0-8", "2:0", "1:4", "99999", "7-99999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect(&topology, wrong[i], "!");
    topology_destroy(&topology);
}

/* Numbers count all cores, also those that are not ours; naming one of those is an error. */
static void test_not_ours(void **state)
{
    (void)state;
    struct topology topology;
    make_machine(&topology, (struct machine){2, 1, 0, 2, 2});
    forbid(&topology, 0, 0);
    expect(&topology, "0", "4"); /* one of its threads */
    forbid(&topology, 4, 4);
    expect(&topology, "0", "!");
    expect(&topology, "0-1", "!");
    expect(&topology, "1", "1,5");
    expect(&topology, "0:*", "1,5");
    expect(&topology, "*", "1-3,5-7");
    forbid(&topology, 3, 3);
    forbid(&topology, 7, 7);
    expect(&topology, "2-3", "!");
    expect(&topology, "1:1", "!");
    topology_destroy(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_what_is_no_list),
        cmocka_unit_test(test_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
