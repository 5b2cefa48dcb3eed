/* SPDX-License-Identifier: Apache-2.0 */
/* What a host knows after a failure, read from a folder that looks like `/`. */
#include "node/fake_root.h"

#include "base/buf.h"
#include "features/evidence/host_evidence.h"

static void take(void *context, const char *name, const char *text)
{
    buf_printf(context, "== %s\n%s", name, text);
}

static void expect_part(struct buf *text, const char *part)
{
    if (strstr(buf_text(text), part) == NULL)
        fail_msg("'%s' is missing in: %s", part, buf_text(text));
}

static void collect(const char *root, struct buf *out)
{
    buf_clear(out);
    evidence_collect(root, take, out);
}

static void test_files(void **state)
{
    (void)state;
    char root[] = FAKE_ROOT;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    assert_non_null(mkdtemp(root));
    put_file(root, "proc/pressure/memory",
             "some avg10=1.00 avg60=0 avg300=0 total=1\nfull avg10=0.50");
    put_file(root, "proc/vmstat", "nr_free_pages 7\noom_kill 3\n");
    put_file(root, "proc/meminfo", "MemTotal:  16 kB\nBuffers: 1 kB\nMemAvailable: 8 kB\n");
    put_file(root, "proc/sys/kernel/core_pattern", "/var/cores/%p\n");
    put_file(root, "dev/kmsg",
             "6,339,5140900,-;Memory cgroup out of memory: Killed process 7\n SUBSYSTEM=x\n");
    collect(root, &text);
    expect_part(
        &text,
        "== pressure\nmemory some avg10=1.00 avg60=0 avg300=0 total=1\nmemory full avg10=0.50\n");
    expect_part(&text, "\noom_kill 3\nMemTotal:  16 kB\nMemAvailable: 8 kB\n");
    expect_part(&text, "== cores\ncore_pattern: /var/cores/%p\nsoft limit: ");
    expect_part(&text, "] Memory cgroup out of memory: Killed process 7\n");
    put_file(root, "proc/sys/kernel/core_pattern", "|/usr/lib/systemd/systemd-coredump %P\n");
    collect(root, &text);
    expect_part(&text, "a program of the host takes core files");
    put_file(root, "proc/sys/kernel/core_pattern", "core\n");
    collect(root, &text);
    expect_part(&text, "core files go into the working directory of each rank\n");
    fake_remove(root);
}

/* They are kept apart, so the many lines that follow do not push them out. */
static void test_errors_of_gpus(void **state)
{
    (void)state;
    char root[] = FAKE_ROOT;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    assert_non_null(mkdtemp(root));
    put_file(root, "dev/kmsg", "3,1,5140900,-;NVRM: Xid (PCI:0000:00:06): 31, pid=7, name=x\n");
    collect(root, &text);
    expect_part(&text, "] NVRM: Xid (PCI:0000:00:06): 31, pid=7, name=x\n== kernel\n[");
    put_file(root, "dev/kmsg", "3,1,5140900,-;NVRM: GPU at PCI:0000:00:06: GPU-7\n");
    collect(root, &text);
    assert_null(strstr(buf_text(&text), "== xid"));
    fake_remove(root);
}

/* What is not there is left out, and nothing grows without a limit. */
static void test_missing_and_large(void **state)
{
    (void)state;
    char root[] = FAKE_ROOT;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20), large AUTO_BUF = BUF_INIT(1 << 20);
    assert_non_null(mkdtemp(root));
    collect(root, &text);
    assert_null(strstr(buf_text(&text), "== pressure"));
    expect_part(&text, "== kernel\nthe kernel's log cannot be read: No such file or directory\n");
    for (int i = 0; i < 20000; i++)
        buf_puts(&large, "some avg10=1.00 avg60=0\n");
    put_file(root, "proc/pressure/cpu", buf_text(&large));
    put_file(root, "dev/kmsg", "no record\n");
    collect(root, &text);
    assert_true(text.length < 4 * EVIDENCE_ITEM_MAX);
    fake_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_errors_of_gpus),
        cmocka_unit_test(test_missing_and_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
