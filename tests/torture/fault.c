/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAMES_MAX 24

enum role { ROLE_NONE, ROLE_DRIVER, ROLE_AGENT, ROLE_KEEPER, ROLE_ALL };

static const char *const role_names[] = {"none", "driver", "agent", "keeper", "all"};

static const char *const words[] = {
#define FAULT_WORD(name, word, errnum) word,
    FAULT_LIST(FAULT_WORD)
#undef FAULT_WORD
};

static const int errnums[] = {
#define FAULT_ERRNUM(name, word, errnum) errnum,
    FAULT_LIST(FAULT_ERRNUM)
#undef FAULT_ERRNUM
};

static struct {
    enum role role;   /* of this process */
    enum role wanted; /* whose calls fail */
    unsigned kind;    /* its number */
    unsigned long k;
    bool on;
    atomic_ulong *count; /* shared by all processes of the run */
    char failed[PATH_MAX];
    const char *argv0;      /* the loader's name of the program, which a title for ps overwrites */
    char program[PATH_MAX]; /* its path */
    const char *self;       /* this library */
    const void *origin;     /* where it is mapped */
} plan;

/* What is called from here is not to be counted. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

void *fault_real(const char *name)
{
    bool was = inside;
    inside = true;
    void *address = dlsym(RTLD_NEXT, name);
    inside = was;
    return address;
}

static enum role role_of(const char *program)
{
    const char *name = strrchr(program, '/');
    name = name == NULL ? program : name + 1;
    if (strcmp(name, "hvdrun-agent") == 0)
        return ROLE_KEEPER;
    return strcmp(name, "hvdrun") == 0 ? ROLE_DRIVER : ROLE_NONE;
}

static unsigned index_of(const char *word, size_t length, const char *const *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (strlen(list[i]) == length && strncmp(word, list[i], length) == 0)
            return i;
    }
    return count;
}

static bool read_plan(const char *text)
{
    size_t length = strcspn(text, ":");
    plan.kind = index_of(text, length, words, sizeof(words) / sizeof(words[0]));
    text += length + (text[length] == ':');
    length = strcspn(text, ":");
    plan.wanted = (enum role)index_of(text, length, role_names, ROLE_ALL + 1);
    text += length + (text[length] == ':');
    char *end = NULL;
    plan.k = strtoul(text, &end, 10);
    plan.on = strcmp(end, ":on") == 0;
    return plan.kind < sizeof(words) / sizeof(words[0]) && plan.wanted <= ROLE_ALL && end != text;
}

static atomic_ulong *map_count(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/count", folder);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof(atomic_ulong)) < 0)
        return NULL;
    void *place = mmap(NULL, sizeof(atomic_ulong), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    return place == MAP_FAILED ? NULL : place;
}

static const char *file_name(const Dl_info *info)
{
    const char *slash = info->dli_fname == NULL ? NULL : strrchr(info->dli_fname, '/');
    return slash != NULL ? slash + 1 : info->dli_fname != NULL ? info->dli_fname : "?";
}

/* Libc and the loader act for whoever called them, with the errors of the calls beneath them. */
static bool is_libc(const char *name)
{
    return strncmp(name, "libc.", 5) == 0 || strncmp(name, "ld-linux", 8) == 0 ||
           strncmp(name, "libgcc_s", 8) == 0;
}

/* The code on whose behalf the call is made is hvdrun's. */
static bool is_ours(void *const *frames, int count)
{
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) == 0)
            return false;
        const char *name = file_name(&info);
        if (info.dli_fbase == plan.origin || is_libc(name))
            continue;
        /* A module inside hvdrun-agent is opened as a memory file, of a number for a name. */
        return strncmp(name, "hvdrun", 6) == 0 || strspn(name, "0123456789") == strlen(name);
    }
    return false;
}

static void record(const char *call, unsigned long number, void *const *frames, int count)
{
    char line[4096];
    int used = snprintf(line, sizeof(line), "%lu %s %d %s %s", number, role_names[plan.role],
                        (int)getpid(), words[plan.kind], call);
    for (int i = 0; i < count && used < (int)sizeof(line) - 300; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) == 0 || info.dli_fbase == plan.origin)
            continue;
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %.200s+%#lx",
                         info.dli_fname == plan.argv0 ? plan.program : info.dli_fname,
                         (unsigned long)((uintptr_t)frames[i] - (uintptr_t)info.dli_fbase));
    }
    line[used++] = '\n';
    int fd = (int)syscall(SYS_openat, AT_FDCWD, plan.failed,
                          O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) /* no descriptor is left, as may be */
        return;
    syscall(SYS_write, fd, line, (size_t)used);
    syscall(SYS_close, fd);
}

/* Whose folders the test may ask for. */
static void record_process(void)
{
    record("PROCESS", 0, NULL, 0);
}

void fault_forked(void)
{
    if (plan.role == ROLE_NONE)
        return;
    plan.role = ROLE_AGENT;
    record_process();
}

/* That a process died is not always seen from the status of the run. */
static void crashed(int number)
{
    void *frames[FRAMES_MAX];
    inside = true;
    int count = backtrace(frames, FRAMES_MAX);
    record("CRASH", (unsigned long)number, frames, count);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], crashed);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("TORTURE"), *folder = getenv("TORTURE_FOLDER");
    inside = true;
    ssize_t length = readlink("/proc/self/exe", plan.program, sizeof(plan.program) - 1);
    if (text != NULL && folder != NULL && length > 0) {
        plan.program[length] = '\0';
        plan.argv0 = program_invocation_name;
        enum role role = role_of(plan.program);
        void *frames[2];
        Dl_info info = {0};
        backtrace(frames, 2); /* loads what it needs now, and not inside malloc() */
        dladdr(&plan, &info);
        plan.origin = info.dli_fbase;
        snprintf(plan.failed, sizeof(plan.failed), "%s/failed", folder);
        bool right = role != ROLE_NONE && read_plan(text);
        plan.count = right ? map_count(folder) : NULL;
        plan.role = plan.count != NULL ? role : ROLE_NONE;
        if (plan.role != ROLE_NONE) {
            watch_crashes();
            record_process();
        }
    }
    inside = false;
}

int fault_now(const char *call, unsigned kinds)
{
    if (plan.role == ROLE_NONE || (kinds & (1u << plan.kind)) == 0 || inside ||
        (plan.wanted != ROLE_ALL && plan.wanted != plan.role))
        return 0;
    inside = true;
    int saved = errno;
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    bool now = false;
    if (is_ours(frames, count)) {
        unsigned long number = atomic_fetch_add(plan.count, 1) + 1;
        now = plan.k != 0 && (plan.on ? number >= plan.k : number == plan.k);
        if (plan.k == 0 || (now && number < plan.k + 8))
            record(call, number, frames, count);
    }
    inside = false;
    errno = now && errnums[plan.kind] != 0 ? errnums[plan.kind] : saved;
    return now;
}

bool fault_pause(bool pause)
{
    bool was = inside;
    inside = pause;
    return was;
}

int fault_is_short(void)
{
    return plan.kind == FAULT_NUMBER_SHORT;
}

/* By the system call itself: the functions are wrapped. */
static mode_t type_of(int fd)
{
    struct stat info;
    return syscall(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) < 0 ? 0 : info.st_mode & S_IFMT;
}

static bool is_stream(int fd, mode_t type)
{
    int kind = 0;
    socklen_t length = sizeof(kind);
    if (type != S_IFSOCK)
        return type == S_IFIFO || type == S_IFREG || type == S_IFCHR;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &length) == 0 && kind == SOCK_STREAM;
}

static unsigned transfer_kinds(int fd, mode_t type, size_t length)
{
    unsigned kinds = FAULT_INTR;
    int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
    /* 0: an event or timer, full only of what was not read yet, which is no reason to wait */
    if (type != S_IFREG && type != 0 && flags >= 0 && (flags & O_NONBLOCK) != 0)
        kinds |= FAULT_AGAIN;
    if (length > 1 && is_stream(fd, type))
        kinds |= FAULT_SHORT;
    if (type == S_IFREG || type == S_IFCHR)
        kinds |= FAULT_IO;
    return kinds;
}

/* Most calls of most runs are of another kind: not looked at closer. */
static bool is_of_interest(void)
{
    return plan.role != ROLE_NONE && !inside;
}

unsigned fault_read_kinds(int fd, size_t length)
{
    if (!is_of_interest())
        return 0;
    int saved = errno;
    mode_t type = type_of(fd);
    unsigned kinds = transfer_kinds(fd, type, length), terminal = 0;
    /* The master of a terminal says EIO only when the last user of the terminal has gone. */
    if (type == S_IFCHR && syscall(SYS_ioctl, fd, TIOCGPTN, &terminal) == 0)
        kinds &= ~(unsigned)FAULT_IO;
    errno = saved;
    return kinds;
}

unsigned fault_write_kinds(int fd, size_t length)
{
    if (!is_of_interest())
        return 0;
    int saved = errno;
    mode_t type = type_of(fd);
    unsigned kinds = transfer_kinds(fd, type, length);
    if (type == S_IFREG)
        kinds |= FAULT_NOSPC;
    /* A worker that does not read its stdin any more is no failure. */
    if (type == S_IFSOCK || (type == S_IFIFO && plan.role != ROLE_AGENT))
        kinds |= FAULT_PIPE;
    if (type == S_IFSOCK)
        kinds |= FAULT_NOMEM;
    errno = saved;
    return kinds;
}
