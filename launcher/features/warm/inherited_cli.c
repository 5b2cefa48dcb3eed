/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/inherited_cli.h"

#include <linux/keyctl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/proc.h"

#define FILE_MAX ((size_t)65536)

/* Lines of /proc/PID/status. */
static const struct {
    const char *line, *name;
} of_status[] = {
    {"Umask", "the umask"},
    {"Uid", "the user"},
    {"Gid", "the group"},
    {"Groups", "the groups"},
    {"SigBlk", "the signals that are blocked"},
    {"SigIgn", "the signals that are ignored"},
    {"CapInh", "the capabilities"},
    {"CapPrm", "the capabilities"},
    {"CapEff", "the capabilities"},
    {"CapBnd", "the capabilities"},
    {"CapAmb", "the capabilities"},
    {"NoNewPrivs", "no_new_privs"},
    {"Seccomp", "seccomp"},
    {"Seccomp_filters", "seccomp"},
    {"Speculation_Store_Bypass", "the control of speculation"},
    {"SpeculationIndirectBranch", "the control of speculation"},
    {"THP_enabled", "the use of huge pages"},
    {"Cpus_allowed", "the processors"},
    {"Mems_allowed", "the memory nodes"},
};

/* Whole files of /proc/PID. */
static const struct {
    const char *file, *name;
} files[] = {
    {"limits", "the limits (ulimit)"},      {"loginuid", "the login session"},
    {"sessionid", "the login session"},     {"oom_score_adj", "oom_score_adj"},
    {"coredump_filter", "coredump_filter"}, {"personality", "the personality"},
    {"timerslack_ns", "the timer slack"},   {"attr/current", "the security label"},
};

static const char *const links[] = {"root",
                                    "ns/cgroup",
                                    "ns/ipc",
                                    "ns/mnt",
                                    "ns/net",
                                    "ns/pid",
                                    "ns/uts",
                                    "ns/user",
                                    "ns/pid_for_children",
                                    "ns/time",
                                    "ns/time_for_children"};

static void put(struct buf *out, const char *name, const char *value, size_t length)
{
    buf_printf(out, "%s:", name);
    for (size_t i = 0; i < length; i++)
        buf_putc(out, value[i] == '\n' ? ' ' : value[i]);
    buf_putc(out, '\n');
}

static void put_status(struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    proc_read(getpid(), 0, "status", &text);
    for (size_t i = 0; i < sizeof(of_status) / sizeof(of_status[0]); i++) {
        char *start AUTO_FREE = mem_printf("\n%s:", of_status[i].line);
        const char *line = strstr(buf_text(&text), start);
        line = line == NULL ? "" : line + strlen(start);
        put(out, of_status[i].name, line, strcspn(line, "\n"));
    }
}

static void put_files(struct buf *out)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
        proc_read(getpid(), 0, files[i].file, &text); /* nothing: this kernel does not have it */
        put(out, files[i].name, buf_text(&text), text.length);
    }
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        char *path AUTO_FREE = mem_printf("/proc/self/%s", links[i]);
        struct stat info;
        char *value AUTO_FREE =
            stat(path, &info) < 0
                ? mem_strdup("")
                : mem_printf("%ju %ju", (uintmax_t)info.st_dev, (uintmax_t)info.st_ino);
        put(out, "a namespace", value, strlen(value));
    }
}

/* Nice value, real-time priority and policy: fields 19, 40 and 41 of /proc/PID/stat. */
static void put_scheduling(struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX), values = BUF_INIT(FILE_MAX);
    proc_read(getpid(), 0, "stat", &text);
    const char *behind_name = strrchr(buf_text(&text), ')');
    const char *at = behind_name == NULL ? "" : behind_name + 1;
    for (int field = 3; *at != '\0'; field++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, " \n");
        if (field == 19 || field == 40 || field == 41)
            buf_printf(&values, "%.*s ", (int)length, at);
        at += length + (at[length] == '\n');
    }
    buf_printf(&values, "%ld", syscall(SYS_ioprio_get, 1, 0)); /* IOPRIO_WHO_PROCESS */
    put(out, "the scheduling (nice, ionice, chrt)", buf_text(&values), values.length);
}

/* The policy of the process is that of its first mapping, unless a mapping has one of its own. */
static void put_memory_policy(struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    proc_read(getpid(), 0, "numa_maps", &text);
    const char *word = buf_text(&text) + strcspn(buf_text(&text), " \n");
    word += strspn(word, " ");
    put(out, "the memory policy (numactl)", word, strcspn(word, " \n"));
}

static void put_keyring(struct buf *out)
{
    char *value AUTO_FREE =
        mem_printf("%ld", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
    put(out, "the session keyring", value, strlen(value));
}

void inherited_read(const char *agent_path, struct buf *out)
{
    struct stat info = {.st_ino = 0};
    stat(agent_path, &info);
    char *value AUTO_FREE = mem_printf("%s %ju %ju %ju", HVDRUN_VERSION, (uintmax_t)info.st_dev,
                                       (uintmax_t)info.st_ino, (uintmax_t)info.st_mtime);
    put(out, "this hvdrun", value, strlen(value));
    put_status(out);
    put_files(out);
    put_scheduling(out);
    put_memory_policy(out);
    put_keyring(out);
}

char *inherited_difference(const char *one, const char *other)
{
    for (;;) {
        size_t length = strcspn(one, "\n");
        if (length != strcspn(other, "\n") || strncmp(one, other, length) != 0)
            break;
        if (one[length] == '\0')
            return NULL;
        one += length + 1;
        other += length + 1;
    }
    const char *line = one[0] == '\0' ? other : one;
    return mem_strndup(line, strcspn(line, ":"));
}
