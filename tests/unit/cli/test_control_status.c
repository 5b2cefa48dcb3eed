/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/control.h"

static void expect(const char *json, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    json_t *status = json_loads(json, 0, NULL);
    assert_non_null(status);
    control_status_text(status, &text);
    json_decref(status);
    assert_string_equal(buf_text(&text), expected);
}

static void test_whole(void **state)
{
    (void)state;
    expect("{\"job\":\"hvdrun-n-1\",\"state\":\"running\",\"epoch\":3,\"size\":12,\"up_s\":3725.2,"
           "\"hosts\":["
           "{\"host\":\"a\",\"state\":\"up\",\"slots\":4,\"ranks\":[0,1,2,3]},"
           "{\"host\":\"node-17\",\"state\":\"draining\",\"slots\":4,\"ranks\":[4,6,7,11],"
           "\"drain_s\":42.4},"
           "{\"host\":\"c\",\"state\":\"lost\",\"slots\":4,\"ranks\":[],\"blacklisted_s\":95},"
           "{\"host\":\"d\",\"state\":\"lost\",\"slots\":16,\"blacklisted_s\":null},"
           "{\"host\":\"e\",\"state\":\"up\",\"slots\":4,\"ranks\":[],\"spare\":true}],"
           "\"events\":[{\"time\":36061.5,\"text\":\"epoch 3: 12 ranks\"},{\"text\":\"b\"}]}",
           "hvdrun-n-1: running, epoch 3, 12 ranks on 2 hosts, up 1 h 02 min\n"
           "\n"
           "host     state     slots  ranks\n"
           "a        up        4      0-3\n"
           "node-17  draining  4      4,6-7,11  leaves within 42 s\n"
           "c        lost      4      -         blacklisted for 1 min 35 s\n"
           "d        lost      16     -         blacklisted for the rest of the job\n"
           "e        up        4      -         spare\n"
           "\n"
           "10:01:01  epoch 3: 12 ranks\n"
           "--:--:--  b\n");
}

static void test_little(void **state)
{
    (void)state;
    expect("{}", "job: state unknown\n");
    expect("{\"job\":\"j\",\"state\":\"waiting for hosts\",\"hosts\":[],\"events\":[],\"size\":0}",
           "j: waiting for hosts\n");
    expect("{\"job\":1,\"state\":[],\"epoch\":\"x\",\"size\":1,\"hosts\":[{\"ranks\":[0]}],"
           "\"events\":[7]}",
           "job: state unknown, 1 rank on 1 host\n"
           "\n"
           "host  state  slots  ranks\n"
           "?     ?      ?      0\n"
           "\n"
           "--:--:--  ?\n");
}

static void test_ranks_that_cannot_go_on(void **state)
{
    (void)state;
    expect("{\"job\":\"j\",\"state\":\"running\",\"ranks\":[{\"rank\":2,\"host\":\"b\",\"state\":"
           "\"running\",\"stopped\":\"frozen by a cgroup\",\"stopped_s\":9.4},{\"rank\":3}]}",
           "j: running\nrank 2 on b was frozen by a cgroup 9 s ago\n");
}

static void test_text_from_outside(void **state)
{
    (void)state;
    expect("{\"job\":\"j\\u001b[2J\",\"state\":\"a\\nb\",\"events\":[{\"text\":"
           "\"x\\u0007\\u009b2J\"}]}",
           "j?[2J: a?b\n\n--:--:--  x???2J\n");
}

/* The next rank would be no number; UBSan sees to it. */
static void test_huge_ranks(void **state)
{
    (void)state;
    expect("{\"job\":\"j\",\"state\":\"running\",\"hosts\":[{\"host\":\"a\",\"state\":\"up\","
           "\"slots\":1,\"ranks\":[9223372036854775807,-9223372036854775807]}]}",
           "j: running\n\n"
           "host  state  slots  ranks\n"
           "a     up     1      9223372036854775807,-9223372036854775807\n");
}

/* One long name does not push the others' cells away. */
static void test_long_name(void **state)
{
    (void)state;
    expect(
        "{\"job\":\"j\",\"hosts\":[{\"host\":\"a\",\"state\":\"up\",\"slots\":1,\"ranks\":[0]},"
        "{\"host\":\"a123456789b123456789c123456789d123456789e\",\"state\":\"up\",\"slots\":1}]}",
        "j: state unknown\n"
        "\n"
        "host  state  slots  ranks\n"
        "a     up     1      0\n"
        "a123456789b123456789c123456789d123456789e  up     1      -\n");
}

static int use_utc(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_little),
        cmocka_unit_test(test_ranks_that_cannot_go_on),
        cmocka_unit_test(test_text_from_outside),
        cmocka_unit_test(test_huge_ranks),
        cmocka_unit_test(test_long_name),
    };
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
