/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/host_evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "features/evidence/evidence.h"
#include "node/cgroup.h"
#include "node/runtime_dir.h"

#define NO_LIMIT (INT64_C(1) << 60) /* what cgroups of version 1 say has none */
#define KERNEL_LINES 60
#define XID_LINES 16
#define KERNEL_LINE 400
#define KERNEL_RECORD 8192
#define KERNEL_RECORDS_MAX 100000 /* a log that grows faster than it is read has no end */

/* The whole file, or as much as fits; "" if it cannot be read. */
static void read_file(const char *root, const char *path, struct buf *out)
{
    char *whole AUTO_FREE = mem_printf("%s%s", root, path);
    int fd AUTO_FD = fd_open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd >= 0)
        (void)fd_read_rest(fd, out);
}

static void pressure(const char *root, struct buf *out)
{
    static const char *const kinds[] = {"cpu", "memory", "io"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(EVIDENCE_ITEM_MAX);
        char *path AUTO_FREE = mem_printf("/proc/pressure/%s", kinds[i]);
        read_file(root, path, &text);
        for (const char *line = buf_text(&text); *line != '\0'; line = text_behind(line, '\n')) {
            size_t length = strcspn(line, "\n");
            buf_printf(out, "%s %.*s\n", kinds[i], (int)length, line);
        }
    }
}

/* Lines of a file that begin with one of these words. */
static void put_lines(const char *root, const char *path, const char *const *words, struct buf *out)
{
    struct buf text AUTO_BUF = BUF_INIT((size_t)1 << 20);
    read_file(root, path, &text);
    for (const char *line = buf_text(&text); *line != '\0'; line = text_behind(line, '\n')) {
        size_t length = strcspn(line, "\n");
        for (const char *const *word = words; *word != NULL; word++) {
            size_t size = strlen(*word);
            if (strncmp(line, *word, size) == 0 && (line[size] == ' ' || line[size] == ':'))
                buf_printf(out, "%.*s\n", (int)length, line);
        }
    }
}

static void memory(const char *root, struct buf *out)
{
    static const char *const events[] = {"low", "high", "max", "oom", "oom_kill", "oom_group_kill"};
    static const char *const machine[] = {"oom_kill", NULL};
    static const char *const total[] = {"MemTotal", "MemAvailable", "SwapTotal", "SwapFree", NULL};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        int64_t count = cgroup_memory_counter("memory.events", "memory.oom_control", events[i]);
        if (count >= 0)
            buf_printf(out, "cgroup %s %lld\n", events[i], (long long)count);
    }
    int64_t now = cgroup_memory_counter("memory.current", "memory.usage_in_bytes", NULL);
    int64_t most = cgroup_memory_counter("memory.max", "memory.limit_in_bytes", NULL);
    if (now >= 0)
        buf_printf(out, "cgroup uses %lld bytes\n", (long long)now);
    if (most >= 0 && most < NO_LIMIT)
        buf_printf(out, "cgroup limit %lld bytes\n", (long long)most);
    put_lines(root, "/proc/vmstat", machine, out);
    put_lines(root, "/proc/meminfo", total, out);
}

static void put_limit(const char *name, rlim_t value, struct buf *out)
{
    if (value == RLIM_INFINITY)
        buf_printf(out, "%s limit: unlimited\n", name);
    else
        buf_printf(out, "%s limit: %llu bytes\n", name, (unsigned long long)value);
}

static void cores(const char *root, struct buf *out)
{
    struct buf text AUTO_BUF = BUF_INIT(EVIDENCE_ITEM_MAX);
    struct rlimit limit;
    read_file(root, "/proc/sys/kernel/core_pattern", &text);
    const char *pattern = buf_text(&text);
    int length = (int)strcspn(pattern, "\n");
    if (length > 0)
        buf_printf(out, "core_pattern: %.*s\n", length, pattern);
    if (pattern[0] == '|')
        buf_puts(out, "a program of the host takes core files, such as coredumpctl's\n");
    else if (length > 0 && pattern[0] != '/')
        buf_puts(out, "core files go into the working directory of each rank\n");
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return;
    put_limit("soft", limit.rlim_cur, out);
    put_limit("hard", limit.rlim_max, out);
    if (limit.rlim_cur == 0 && pattern[0] != '|')
        buf_puts(out, "the soft limit is 0, so there are no core files; 'ulimit -c unlimited' "
                      "before hvdrun allows them\n");
}

static void put_folder(const char *path, struct buf *out)
{
    struct statvfs info;
    if (statvfs(path, &info) < 0 || info.f_blocks == 0)
        return;
    unsigned long long unit = info.f_frsize, mib = 1 << 20;
    buf_printf(out, "%s: %llu of %llu MiB free%s", path, info.f_bavail * unit / mib,
               info.f_blocks * unit / mib, info.f_bavail == 0 ? ", it is full" : "");
    if (info.f_files > 0)
        buf_printf(out, ", %llu of %llu inodes free", (unsigned long long)info.f_favail,
                   (unsigned long long)info.f_files);
    buf_putc(out, '\n');
}

static void folders(const char *root, struct buf *out)
{
    char *base AUTO_FREE = runtime_dir_base(), *shm AUTO_FREE = mem_printf("%s/dev/shm", root);
    put_folder(base, out);
    put_folder(shm, out);
}

/* The last lines of some kind. */
struct last_lines {
    char *lines[KERNEL_LINES];
    size_t most, count;
};

static void keep_line(struct last_lines *kept, double seconds, const char *text)
{
    char **place = &kept->lines[kept->count++ % kept->most];
    free(*place);
    *place = mem_printf("[%.3f] %.*s", seconds, KERNEL_LINE, text);
}

static void put_last(struct last_lines *kept, struct buf *out)
{
    size_t first = kept->count > kept->most ? kept->count - kept->most : 0;
    for (size_t i = first; i < kept->count; i++)
        buf_printf(out, "%s\n", kept->lines[i % kept->most]);
    for (size_t i = 0; i < kept->most; i++)
        free(kept->lines[i]);
}

/* The text of a record of /dev/kmsg, "6,339,5140900,-;text". Its time, in microseconds, is close to
 * that of the monotonic clock; `offset_s` leads to the wall clock. NULL: it is damaged. */
static const char *record_text(char *record, double offset_s, double *seconds)
{
    char *text = strchr(record, ';');
    if (text == NULL)
        return NULL;
    text++;
    text[strcspn(text, "\n")] = '\0';
    const char *comma = strchr(record, ',');
    comma = comma == NULL ? NULL : strchr(comma + 1, ',');
    *seconds = offset_s;
    if (comma != NULL)
        *seconds += (double)strtoull(comma + 1, NULL, 10) / 1e6;
    return text;
}

/* Keeps records of the kernel's log: all, or those of NVIDIA's driver about errors. -1 and errno:
 * the log cannot be read. */
static int walk_kernel(const char *root, bool all, struct last_lines *kept)
{
    char *path AUTO_FREE = mem_printf("%s/dev/kmsg", root);
    char record[KERNEL_RECORD + 1];
    double offset_s = (double)(clock_wall_ns() - clock_mono_ns()) / 1e9, seconds;
    struct xid xid;
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    for (int i = 0; i < KERNEL_RECORDS_MAX; i++) {
        ssize_t got = fd_read(fd, record, KERNEL_RECORD);
        if (got < 0 && errno == EPIPE)
            continue; /* records were overwritten while we read */
        if (got <= 0)
            break;
        record[got] = '\0';
        const char *text = record_text(record, offset_s, &seconds);
        if (text != NULL && (all || xid_read(text, &xid)))
            keep_line(kept, seconds, text);
    }
    return 0;
}

static void kernel(const char *root, struct buf *out)
{
    struct last_lines kept = {.most = KERNEL_LINES};
    if (walk_kernel(root, true, &kept) < 0)
        buf_printf(out, "the kernel's log cannot be read: %s\n", strerror(errno));
    put_last(&kept, out);
}

/* Apart from the other lines, because the driver writes many lines after such an error. */
static void xid(const char *root, struct buf *out)
{
    struct last_lines kept = {.most = XID_LINES};
    walk_kernel(root, false, &kept);
    put_last(&kept, out);
}

/* One line for each kind of evidence of a host. Of a job of many hosts, the driver has no room for
 * the last ones. */
static const struct kind {
    const char *name;
    void (*collect)(const char *root, struct buf *out);
} kinds[] = {
    {"pressure", pressure}, {"memory", memory}, {"cores", cores},
    {"folders", folders},   {"xid", xid},       {"kernel", kernel},
};

void evidence_collect(const char *root, evidence_take *take, void *context)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(EVIDENCE_ITEM_MAX);
        kinds[i].collect(root, &text);
        if (text.length > 0)
            take(context, kinds[i].name, buf_text(&text));
    }
}
