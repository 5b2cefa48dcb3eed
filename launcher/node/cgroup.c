/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "node/room_test.h"

#define FILE_MAX (1 << 16)

static bool lists(const char *controllers, size_t length, const char *wanted)
{
    size_t size = strlen(wanted);
    if (size == 0)
        return length == 0;
    const char *end = controllers + length;
    while (controllers < end) {
        size_t word = strcspn(controllers, ",:");
        if (word == size && memcmp(controllers, wanted, size) == 0)
            return true;
        controllers += word + 1;
    }
    return false;
}

char *cgroup_path_in(const char *text, const char *controller)
{
    /* each line is NUMBER:CONTROLLERS:PATH */
    for (; *text != '\0'; text = text_behind(text, '\n')) {
        size_t length = strcspn(text, "\n");
        const char *names = memchr(text, ':', length);
        const char *path =
            names == NULL ? NULL : memchr(names + 1, ':', length - (size_t)(names + 1 - text));
        if (path != NULL && lists(names + 1, (size_t)(path - names - 1), controller))
            return mem_strndup(path + 1, length - (size_t)(path + 1 - text));
    }
    return NULL;
}

/* Where a process is in the unified tree and in that of a controller; NULL: nowhere. The caller's.
 */
static void paths_of(const char *process, const char *controller, char **unified, char **legacy)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    char *file AUTO_FREE = mem_printf("/proc/%s/cgroup", process);
    if (fd_read_file(file, &text, NULL) < 0)
        buf_clear(&text);
    *unified = cgroup_path_in(buf_text(&text), "");
    *legacy = cgroup_path_in(buf_text(&text), controller);
}

/* Reads ROOT/PATH/FILE, or ROOT/FILE: in a container the path often names what is outside of it. */
static bool read_in(const char *root, const char *path, const char *file, struct buf *out)
{
    char *full AUTO_FREE = mem_printf("%s%s/%s", root, path != NULL ? path : "", file);
    if (fd_read_file(full, out, NULL) == 0)
        return true;
    buf_clear(out);
    char *top AUTO_FREE = mem_printf("%s/%s", root, file);
    return fd_read_file(top, out, NULL) == 0;
}

static int64_t first_number(const char *text)
{
    return isdigit((unsigned char)*text) ? strtoll(text, NULL, 10) : -1;
}

static int64_t number_after(const char *text, const char *key)
{
    char *begin AUTO_FREE = mem_printf("%s ", key);
    const char *number = text_line_after(text, begin);
    return number != NULL ? first_number(number) : -1;
}

int64_t cgroup_memory_counter(const char *v2_file, const char *v1_file, const char *key)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    char *unified AUTO_FREE = NULL, *memory AUTO_FREE = NULL;
    paths_of("self", "memory", &unified, &memory);
    bool found = (memory != NULL && read_in("/sys/fs/cgroup/memory", memory, v1_file, &text)) ||
                 read_in("/sys/fs/cgroup", unified, v2_file, &text);
    if (!found)
        return -1;
    return key == NULL ? first_number(buf_text(&text)) : number_after(buf_text(&text), key);
}

/* A file of exactly this cgroup begins a line with this text. */
static bool file_says(const char *root, const char *path, const char *file, const char *line)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    char *full AUTO_FREE = mem_printf("%s%s/%s", root, path != NULL ? path : "", file);
    return path != NULL && fd_read_file(full, &text, NULL) == 0 &&
           text_line_after(buf_text(&text), line) != NULL;
}

bool cgroup_is_frozen(pid_t pid)
{
    char process[16], *unified AUTO_FREE = NULL, *legacy AUTO_FREE = NULL;
    snprintf(process, sizeof(process), "%d", (int)pid);
    paths_of(process, "freezer", &unified, &legacy);
    return file_says("/sys/fs/cgroup/freezer", legacy, "freezer.state", "FROZEN") ||
           file_says("/sys/fs/cgroup", unified, "cgroup.events", "frozen 1") ||
           file_says("/sys/fs/cgroup/unified", unified, "cgroup.events", "frozen 1");
}

static int cpus_of(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0 || quota / period > 1000000)
        return 0;
    return (int)(quota / period + (quota % period > 0));
}

/* The quota at one level of the unified tree: "max 100000" or "150000 100000". */
static int unified_quota(const char *folder)
{
    char *path AUTO_FREE = mem_printf("%s/cpu.max", folder);
    struct buf text AUTO_BUF = BUF_INIT(256);
    if (fd_read_file(path, &text, NULL) < 0)
        return 0;
    const char *period = strchr(buf_text(&text), ' ');
    return period == NULL ? 0 : cpus_of(first_number(buf_text(&text)), first_number(period + 1));
}

static int legacy_quota(const char *folder)
{
    char *quota AUTO_FREE = mem_printf("%s/cpu.cfs_quota_us", folder);
    char *period AUTO_FREE = mem_printf("%s/cpu.cfs_period_us", folder);
    struct buf first AUTO_BUF = BUF_INIT(256);
    struct buf second AUTO_BUF = BUF_INIT(256);
    if (fd_read_file(quota, &first, NULL) < 0 || fd_read_file(period, &second, NULL) < 0)
        return 0;
    return cpus_of(first_number(buf_text(&first)), first_number(buf_text(&second)));
}

/* The smallest quota from `path` up to the root of its tree. */
static int smallest_quota(const char *root, const char *path, int (*quota_of)(const char *folder))
{
    char *folder AUTO_FREE = mem_printf("%s%s", root, strcmp(path, "/") == 0 ? "" : path);
    size_t root_length = strlen(root);
    int smallest = 0;
    for (;;) {
        int quota = quota_of(folder);
        if (quota > 0 && (smallest == 0 || quota < smallest))
            smallest = quota;
        char *slash = strlen(folder) > root_length ? strrchr(folder, '/') : NULL;
        if (slash == NULL || (size_t)(slash - folder) < root_length)
            return smallest;
        *slash = '\0';
    }
}

int cgroup_cpu_quota(void)
{
    char *unified AUTO_FREE = NULL, *cpu AUTO_FREE = NULL;
    int quota = 0;
    paths_of("self", "cpu", &unified, &cpu);
    if (cpu != NULL)
        quota = smallest_quota("/sys/fs/cgroup/cpu", cpu, legacy_quota);
    if (quota == 0 && unified != NULL)
        quota = smallest_quota("/sys/fs/cgroup", unified, unified_quota);
    return quota;
}

/* Memory kills. */

#define VICTIMS_MAX 256
#define RECORDS_MAX 65536           /* of the kernel's log that one call reads */
#define FIRST_PID_SPACE 0xEFFFFFFCU /* the kernel's PROC_PID_INIT_INO */

struct oom_watch {
    int64_t cgroup, machine; /* counters at the start; -1: not known */
    int log;                 /* /dev/kmsg behind its last record; -1: says nothing of our pids */
    pid_t victims[VICTIMS_MAX];
    size_t victim_count;
};

static int64_t cgroup_kills(void)
{
    return cgroup_memory_counter("memory.events", "memory.oom_control", "oom_kill");
}

static int64_t machine_kills(void)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    if (fd_read_file("/proc/vmstat", &text, NULL) < 0)
        return -1;
    return number_after(buf_text(&text), "oom_kill");
}

bool oom_log_has_our_pids(void)
{
    struct stat space;
    return stat("/proc/self/ns/pid", &space) == 0 && space.st_ino == FIRST_PID_SPACE;
}

struct oom_watch *oom_watch_create(void)
{
    struct oom_watch *watch = mem_alloc(sizeof(*watch));
    watch->cgroup = cgroup_kills();
    watch->machine = machine_kills();
    watch->log = -1;
    if (oom_log_has_our_pids())
        watch->log = fd_open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (watch->log >= 0 && lseek(watch->log, 0, SEEK_END) < 0)
        fd_close(&watch->log);
    return watch;
}

void oom_watch_destroy(struct oom_watch *watch)
{
    if (watch == NULL)
        return;
    fd_close(&watch->log);
    free(watch);
}

pid_t oom_victim_in(const char *record)
{
    static const char said[] = "Killed process ";
    const char *at = strstr(record, said);
    if (at == NULL || !isdigit((unsigned char)at[sizeof(said) - 1]))
        return -1;
    long pid = strtol(at + sizeof(said) - 1, NULL, 10);
    return pid > 0 && pid < INT32_MAX ? (pid_t)pid : -1;
}

/* Each read gives one record; EPIPE means that records were overwritten before we came. */
static void read_log(struct oom_watch *watch)
{
    char record[8192];
    for (int i = 0; watch->log >= 0 && i < RECORDS_MAX; i++) {
        ssize_t got = fd_read(watch->log, record, sizeof(record) - 1);
        if (got < 0 && errno == EPIPE)
            continue;
        if (got <= 0)
            return;
        record[got] = '\0';
        pid_t victim = oom_victim_in(record);
        if (victim > 0)
            watch->victims[watch->victim_count++ % VICTIMS_MAX] = victim;
    }
}

enum oom_verdict oom_watch_verdict(struct oom_watch *watch, pid_t pid)
{
    read_log(watch);
    for (size_t i = 0; i < watch->victim_count && i < VICTIMS_MAX; i++) {
        if (watch->victims[i] == pid)
            return OOM_CERTAIN;
    }
    if (watch->cgroup >= 0 && cgroup_kills() > watch->cgroup)
        return OOM_LIKELY;
    if (watch->machine >= 0 && machine_kills() > watch->machine)
        return OOM_POSSIBLE;
    return OOM_NO;
}
