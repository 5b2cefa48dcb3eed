/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/usage/proc_text.h"

/* A whole line of the kernel, with its 52 fields. */
#define FIELDS(name)                                                                               \
    "4711 (" name ") S 4700 4711 4690 0 -1 4194560 25934 81 2 0 420 33 7 5 20 0 18 0 3029531 "     \
    "1180557312 70011 18446744073709551615 1 1 0 0 0 0 0 16781312 134219778 0 0 0 17 3 0 0 0 0 0 " \
    "0 0 0 0 0 0 0 256\n"

static void check_stat(const char *text)
{
    struct proc_stat stat;
    assert_int_equal(proc_stat_read(text, &stat), 0);
    assert_int_equal(stat.parent, 4700);
    assert_int_equal(stat.session, 4690);
    assert_int_equal(stat.cpu_ticks, 420 + 33 + 7 + 5);
    assert_int_equal(stat.threads, 18);
    assert_int_equal(stat.faults, 25934 + 81);
    assert_int_equal(stat.start_ticks, 3029531);
    assert_int_equal(stat.resident_pages, 70011);
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.flags, 4194560);
    assert_int_equal(stat.code, 256);
}

static void test_stat(void **state)
{
    (void)state;
    check_stat(FIELDS("python3"));
    check_stat(FIELDS("")); /* a process may take any name */
    check_stat(FIELDS(") R 1 1 1"));
    check_stat(FIELDS("a\nb) S (c"));
}

static void test_stat_broken(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "4711 (a",
        "4711 (a)",
        "4711 (a) ",
        "4711 (a) S",
        "4711 (a) S 1 2 3",
        "4711 (a) S 1 2 x 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
        "20 21",
        "4711 (a) S 1 2 99999999999999999999999 4 5 6 7 8 9 10 11 12 "
        "13 14 15 16 17 18 19 20 21"};
    struct proc_stat stat = {.threads = 7};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(proc_stat_read(texts[i], &stat), -1);
        assert_int_equal(stat.threads, 7); /* untouched */
    }
}

static void test_waits(void **state)
{
    (void)state;
    uint64_t waits = 1;
    assert_int_equal(proc_waits_read("Name:\ta\nnonvoluntary_ctxt_switches:\t7\n", &waits), -1);
    assert_int_equal(waits, 1);
    assert_int_equal(proc_waits_read("Name:\ta\nvoluntary_ctxt_switches:\t42\n", &waits), 0);
    assert_int_equal(waits, 42);
}

static void test_pending_signals(void **state)
{
    (void)state;
    uint64_t pending = 1;
    const char *wrong[] = {"", "SigPnd:\t0000000000000100\n", "SigPnd:\tx\nShdPnd:\t0\n",
                           "SigPnd:\t0\nShdPnd:\t00000000000000100\n"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(proc_pending_read(wrong[i], &pending), -1);
    assert_int_equal(pending, 1);
    assert_int_equal(proc_pending_read("Name:\ta\nSigPnd:\t0000000000000100\n"
                                       "ShdPnd:\t00000000000040ff\nSigBlk:\t0000000000010000\n",
                                       &pending),
                     0);
    assert_int_equal(pending, 0x41ff);
    assert_int_equal(proc_caught_read("SigIgn:\t0000000000000001\n", &pending), -1);
    assert_int_equal(proc_caught_read("SigIgn:\t1\nSigCgt:\t0000000000002000\n", &pending), 0);
    assert_int_equal(pending, 0x2000);
}

static void test_time_of_a_thread(void **state)
{
    (void)state;
    uint64_t ns = 1;
    assert_int_equal(proc_run_ns_read("", &ns), -1);
    assert_int_equal(proc_run_ns_read("12", &ns), -1);
    assert_int_equal(proc_run_ns_read("-1 2 3\n", &ns), -1);
    assert_int_equal(ns, 1);
    assert_int_equal(proc_run_ns_read("1101275163 3083127455 812\n", &ns), 0);
    assert_int_equal(ns, 1101275163);
}

static void test_a_system_call(void **state)
{
    (void)state;
    struct proc_call call = {.number = 9};
    const char *wrong[] = {"",
                           "running\n",
                           "-1 0x7ffd 0x7f41\n",
                           "7 0x1 0x2 0x3",
                           "7 1 2 3 4 5 6 7",
                           "7 0x1 0x2 0x0x 0x1 0x1 0x1",
                           "7 0x11112222333344445 0x2 0x3 0x4 0x5 0x6"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(proc_call_read(wrong[i], &call), -1);
    assert_int_equal(call.number, 9);
    assert_int_equal(
        proc_call_read("7 0x7ffc1 0x1 0xffffffff 0x0 0x8 0xdeadbeef 0x7ffc 0x7f3\n", &call), 0);
    assert_int_equal(call.number, 7);
    assert_int_equal(call.arguments[0], 0x7ffc1);
    assert_int_equal(call.arguments[2], 0xffffffff);
    assert_int_equal(call.arguments[5], 0xdeadbeef);
}

static void test_io(void **state)
{
    (void)state;
    struct proc_io io = {1, 2};
    assert_int_equal(proc_io_read("rchar: 123\nwchar: 45\nsyscr: 6\nread_bytes: 7\n", &io), 0);
    assert_int_equal(io.read_bytes, 123);
    assert_int_equal(io.written_bytes, 45);
    assert_int_equal(proc_io_read("rchar: 123\n", &io), -1);
    assert_int_equal(proc_io_read("rchar: \nwchar: 1\n", &io), -1);
    assert_int_equal(proc_io_read("", &io), -1);
    assert_int_equal(io.read_bytes, 123);
}

static void test_pressure(void **state)
{
    (void)state;
    struct proc_pressure pressure;
    assert_int_equal(
        proc_pressure_read("some avg10=98.85 avg60=99.29 avg300=99.60 total=2669274995\n"
                           "full avg10=1.05 avg60=0.00 avg300=0.00 total=17\n",
                           &pressure),
        0);
    assert_true(pressure.some_percent > 98.84 && pressure.some_percent < 98.86);
    assert_true(pressure.full_percent > 1.04 && pressure.full_percent < 1.06);
    assert_int_equal(pressure.some_us, 2669274995);
    assert_int_equal(pressure.full_us, 17);
    assert_int_equal(
        proc_pressure_read("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", &pressure), 0);
    assert_int_equal(pressure.some_us, 5);
    assert_int_equal(pressure.full_us, 0);
}

static void test_pressure_broken(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "some",
                                        "some avg10=1.0",
                                        "some avg10= total=1",
                                        "some avg10=1. total=1",
                                        "some avg10=1.0\nfull total=3",
                                        "full avg10=1.0 total=3",
                                        "some avg10=1.0 total=3\nfull avg10=x total=4"};
    struct proc_pressure pressure;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(proc_pressure_read(texts[i], &pressure), -1);
}

static void test_load(void **state)
{
    (void)state;
    double load = 0;
    assert_int_equal(proc_load_read("12.25 0.76 0.50 2/183 4711\n", &load), 0);
    assert_true(load > 12.24 && load < 12.26);
    assert_int_equal(proc_load_read("", &load), -1);
    assert_int_equal(proc_load_read("-1.0", &load), -1);
}

static void test_memory(void **state)
{
    (void)state;
    struct proc_memory memory;
    assert_int_equal(proc_memory_read("MemTotal:       16303428 kB\nMemFree:  1 kB\n"
                                      "MemAvailable:   11211096 kB\n",
                                      &memory),
                     0);
    assert_int_equal(memory.total_bytes, INT64_C(16303428) * 1024);
    assert_int_equal(memory.available_bytes, INT64_C(11211096) * 1024);
    assert_int_equal(proc_memory_read("MemTotal: 1 kB\n", &memory), -1);
    assert_int_equal(
        proc_memory_read("MemTotal: 9999999999999999999 kB\nMemAvailable: 1 kB\n", &memory), -1);
}

static int map(const char *text, struct proc_mapping *out)
{
    return proc_mapping_read(text, strcspn(text, "\n"), out);
}

static void test_mapping(void **state)
{
    (void)state;
    struct proc_mapping found = {.inode = 3};
    assert_int_equal(map("7f12-7f34 r-xp 00001000 103:02 4711   /lib/a b.so (deleted)\n/", &found),
                     0);
    assert_int_equal(found.start, 0x7f12);
    assert_int_equal(found.end, 0x7f34);
    assert_int_equal(found.offset, 0x1000);
    assert_int_equal(found.inode, 4711);
    assert_memory_equal(found.rights, "r-xp", 4);
    assert_memory_equal(found.path, "/lib/a b.so (deleted)", found.length);
    assert_int_equal(found.length, strlen("/lib/a b.so (deleted)"));
    static const char *const others[] = {"",
                                         "/",
                                         "7f12-7f34 rw-p 00000000 00:00 0\n/lib/a.so",
                                         "7f12 7f34 r-xp 0 103:02 4711 /a",
                                         "7f12-7f34 r-x 00001000 103:02 4711 /a",
                                         "7f34-7f34 r-xp 00001000 103:02 4711 /a",
                                         "7f12-7f34 r/xp 00001000 103:02 4711 /a",
                                         "7f12-7f34 /"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(map(others[i], &found), -1);
    assert_int_equal(found.inode, 4711);
    assert_int_equal(map("7f12-7f34 r-xp 00001000 /a", &found), 0);
    assert_int_equal(found.inode, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_stat_broken),
        cmocka_unit_test(test_pending_signals),
        cmocka_unit_test(test_time_of_a_thread),
        cmocka_unit_test(test_a_system_call),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_io),
        cmocka_unit_test(test_pressure),
        cmocka_unit_test(test_pressure_broken),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
