/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of NVIDIA's driver in the kernel's log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/evidence/evidence.h"
#include "model/usage/gpu_words.h"

static void test_lines(void **state)
{
    (void)state;
    struct xid xid;
    assert_true(xid_read("[1.5] NVRM: Xid (PCI:0000:00:06): 31, pid=2091, name=python3, channel "
                         "0x0000000a, intr 00000000. MMU Fault",
                         &xid));
    assert_string_equal(xid.pci, "0000:00:06");
    assert_int_equal(xid.number, 31);
    assert_string_equal(xid.pid, "2091");
    assert_string_equal(xid.name, "python3");
    /* as older drivers write it; the next line is not part of it */
    assert_true(xid_read("NVRM: Xid (0000:03:00): 14, Channel 00000001\npid=7", &xid));
    assert_string_equal(xid.pci, "0000:03:00");
    assert_int_equal(xid.number, 14);
    assert_string_equal(xid.pid, "");
    assert_string_equal(xid.name, "");
    assert_true(xid_read("NVRM: Xid (PCI:0000:00:06): 79, name=a-name-that-is-much-longer-than-the-"
                         "kernel-allows",
                         &xid));
    assert_int_equal(strlen(xid.name), sizeof(xid.name) - 1);
    assert_true(xid_read("NVRM: Xid (PCI:0000:00:06): 79, pid='<unknown>', name=<unknown>, GPU has "
                         "fallen off the bus.",
                         &xid));
    assert_int_equal(xid.number, 79);
    assert_string_equal(xid.pid, "");
    assert_string_equal(xid.name, "");
}

static void test_other_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "NVRM: GPU at PCI:0000:00:06: GPU-ac3c6d57",
        "NVRM: Xid (",
        "NVRM: Xid (PCI:0000:00:06",
        "NVRM: Xid (PCI:0000:00:06): ",
        "NVRM: Xid (PCI:0000:00:06): x",
        "NVRM: Xid (PCI:): 31",
        "NVRM: Xid (): 31",
        "NVRM: Xid (PCI:0000:00:06\n): 31",
        "NVRM: Xid (PCI:0000000000000000000000000000000000000000:00:06): 31",
    };
    struct xid xid;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (xid_read(lines[i], &xid))
            fail_msg("'%s' is one", lines[i]);
    }
}

static void test_addresses(void **state)
{
    (void)state;
    struct xid xid = {.pci = "0000:3b:00"};
    assert_true(xid_is_of(&xid, "00000000:3B:00.0"));
    assert_true(xid_is_of(&xid, "0000:3b:00.0"));
    assert_false(xid_is_of(&xid, "00000001:3B:00.0"));
    assert_false(xid_is_of(&xid, "00000000:3B:01.0"));
    assert_false(xid_is_of(&xid, "00000000:3B:001.0"));
    assert_false(xid_is_of(&xid, ""));
    assert_false(xid_is_of(&(struct xid){.pci = ""}, ""));
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(xid_blame(31), XID_PROGRAM);
    assert_int_equal(xid_blame(79), XID_GPU);
    assert_int_equal(xid_blame(45), XID_NOBODY);
    assert_int_equal(xid_blame(7777), XID_NOBODY);
    assert_null(xid_text(7777));
    static const int programs[] = {13, 31, 43},
                     gpus[] = {48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        assert_int_equal(xid_blame(programs[i]), XID_PROGRAM);
        assert_non_null(xid_text(programs[i]));
    }
    for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        assert_int_equal(xid_blame(gpus[i]), XID_GPU);
        assert_non_null(xid_text(gpus[i]));
    }
    assert_string_equal(gpu_trouble_text(15), "is lost"); /* NVML_ERROR_GPU_IS_LOST */
    assert_string_equal(gpu_trouble_text(16), "needs a reset");
    assert_null(gpu_trouble_text(0));
    assert_true(clock_reason_is_alarm("hardware thermal slowdown"));
    assert_false(clock_reason_is_alarm("software power cap"));
    assert_false(clock_reason_is_alarm("x"));
    assert_null(clock_reason_name(-1));
    assert_null(clock_reason_name(9));
    assert_int_equal(clock_reason_bit(8), 0x100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_other_lines),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
