/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that NCCL 2.28.9 gave on two H200, in tests/fuzz/corpus/ras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/hang/ras.h"

static int read_text(const char *text, struct ras_report *report)
{
    return ras_json_read(text, strlen(text), report, NULL);
}

static void read_recorded(const char *name, struct ras_report *report)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    char *path AUTO_FREE = mem_printf("%s/tests/fuzz/corpus/ras/%s", getenv("HVDRUN_SOURCE"), name);
    assert_int_equal(fd_read_file(path, &text, NULL), 0);
    assert_int_equal(ras_json_read(buf_text(&text), text.length, report, NULL), 0);
}

static void test_recorded(void **state)
{
    (void)state;
    struct ras_report report;
    read_recorded("healthy", &report);
    assert_int_equal(report.count, 2);
    assert_int_equal(report.entries[1].place.counts[RAS_ALLREDUCE], 771);
    ras_report_clear(&report);
    read_recorded("hung", &report);
    assert_int_equal(report.count, 4); /* two communicators */
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(report.entries[i].host, "192.0.2.2");
        assert_int_equal(report.entries[i].pid, 604 + i % 2);
        assert_int_equal(report.entries[i].place.counts[RAS_BROADCAST], i < 2 ? 899 : 0);
    }
    assert_int_equal(report.entries[0].place.counts[RAS_ALLREDUCE], 900);
    assert_int_equal(report.entries[1].place.counts[RAS_ALLREDUCE], 899);
    assert_int_equal(report.entries[0].place.comm, report.entries[1].place.comm);
    assert_int_equal(report.entries[2].place.comm, report.entries[3].place.comm);
    assert_true(report.entries[0].place.comm != report.entries[2].place.comm);
    ras_report_clear(&report);
    read_recorded("missing", &report); /* without a comma, and rank 1 was killed */
    assert_int_equal(report.count, 1);
    assert_int_equal(report.entries[0].place.counts[RAS_ALLREDUCE], 101);
    ras_report_clear(&report);
}

static void test_odd(void **state)
{
    (void)state;
    struct ras_report report;
    assert_int_equal(read_text("", &report), -1);
    assert_int_equal(read_text("OK\nNCCL version 2.27.3 compiled with CUDA 12.9\n", &report), -1);
    assert_int_equal(read_text("{\"communicators\":7}", &report), -1);
    assert_int_equal(read_text("{\"communicators\":[{\"ranks\":[", &report), -1);
    assert_int_equal(report.count, 0);
    assert_int_equal(
        read_text("OK\n{\"communicators\":[7,{},{\"ranks\":[3,{\"host\":\"a\"},{\"host\":\"b\","
                  "\"pid\":\"x\",\"collective_counts\":{\"AllReduce\":-5,\"Reduce\":\"7\"}}]}]}",
                  &report),
        0);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.entries[0].pid, 0);
    assert_int_equal(report.entries[0].place.counts[RAS_ALLREDUCE], 0);
    ras_report_clear(&report);
    /* commas are missing; what looks like that inside a text stays */
    assert_int_equal(read_text("{\"a\": 1 \"b\": \"x\\\" \\\"y\" \"communicators\": [{\"ranks\": "
                               "[{\"host\": \"1 \\\"2\" \"collective_counts\": {}}]}]}",
                               &report),
                     0);
    assert_int_equal(report.count, 1);
    assert_string_equal(report.entries[0].host, "1 \"2");
    ras_report_clear(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
