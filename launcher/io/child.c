/* SPDX-License-Identifier: Apache-2.0 */
#include "io/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/elf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/exit/signal_name.h"
#include "model/settings/suggest.h"

enum step {
    STEP_NONE,
    STEP_PARENT,
    STEP_SESSION,
    STEP_FDS,
    STEP_LIMIT,
    STEP_CPUS,
    STEP_WDIR,
    STEP_TRACE,
    STEP_EXEC
};

static const char *const step_names[] = {
    [STEP_NONE] = "start",
    [STEP_PARENT] = "watch its parent",
    [STEP_SESSION] = "create a session",
    [STEP_FDS] = "set up its descriptors",
    [STEP_LIMIT] = "set a limit",
    [STEP_CPUS] = "bind to its CPUs",
    [STEP_TRACE] = "stop at the start of",
    [STEP_EXEC] = "execute",
};

struct failure {
    enum step step;
    int errnum;
};

/* Runs in the child, which shares our memory until exec: it only makes system calls, and tells its
 * failure through `failure`. */
static void child_fail(volatile struct failure *failure, enum step step)
{
    failure->step = step;
    failure->errnum = errno;
    _exit(STATUS_NOT_EXECUTABLE);
}

static void child_fds(const struct child_spec *spec, volatile struct failure *failure)
{
    int moved[3];
    /* First out of the way of 0..2, so that no dup2 overwrites a source of a later one. */
    for (int i = 0; i < 3; i++) {
        moved[i] = spec->fds[i];
        if (moved[i] <= 2 && moved[i] != i)
            moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, 3);
        if (moved[i] < 0)
            child_fail(failure, STEP_FDS);
    }
    for (int i = 0; i < 3; i++) {
        int result = moved[i] == i ? fcntl(i, F_SETFD, 0) : fd_dup2(moved[i], i);
        if (result < 0)
            child_fail(failure, STEP_FDS);
    }
    int keep = spec->keep_fd, as = spec->keep_as == 0 ? keep : spec->keep_as;
    if (keep >= 0 && (keep == as ? fcntl(keep, F_SETFD, 0) : fd_dup2(keep, as)) < 0)
        child_fail(failure, STEP_FDS);
}

static void child_limits(const struct child_spec *spec, volatile struct failure *failure)
{
    for (size_t i = 0; i < spec->limit_count; i++) {
        struct rlimit limit;
        __rlimit_resource_t resource = (__rlimit_resource_t)spec->limits[i].resource;
        if (getrlimit(resource, &limit) < 0)
            child_fail(failure, STEP_LIMIT);
        rlim_t soft = spec->limits[i].soft;
        if (soft > limit.rlim_max)
            soft = limit.rlim_max; /* this node allows less: as much as it allows */
        if (soft == limit.rlim_cur)
            continue;
        limit.rlim_cur = soft;
        if (setrlimit(resource, &limit) < 0)
            child_fail(failure, STEP_LIMIT);
    }
}

static void child_exec(const struct child_spec *spec, volatile struct failure *failure)
{
    execve(spec->path, spec->argv, spec->envp);
    if (errno != ENOEXEC || spec->script_shell == NULL)
        child_fail(failure, STEP_EXEC);
    size_t count = 0;
    while (spec->argv[count] != NULL)
        count++;
    const char *argv[count + 2];
    argv[0] = spec->script_shell;
    argv[1] = spec->path;
    for (size_t i = 1; i <= count; i++)
        argv[i + 1] = spec->argv[i];
    execve(spec->script_shell, (char *const *)argv, spec->envp);
    child_fail(failure, STEP_EXEC);
}

static void set_ignored(void (*action)(int))
{
    signal(SIGPIPE, action);
    signal(SIGXFSZ, action);
}

void child_ignore_signals(void)
{
    set_ignored(SIG_IGN);
}

static void child_main(const struct child_spec *spec, pid_t parent,
                       volatile struct failure *failure)
{
    if (!spec->lasting) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            child_fail(failure, STEP_PARENT);
    }
    if (setsid() < 0)
        child_fail(failure, STEP_SESSION);
    if (spec->controlling_terminal && ioctl(spec->fds[0], TIOCSCTTY, 0) < 0)
        child_fail(failure, STEP_SESSION);
    child_fds(spec, failure);
    child_limits(spec, failure);
    if (spec->cpus != NULL && sched_setaffinity(0, spec->cpus_size, spec->cpus) < 0)
        child_fail(failure, STEP_CPUS);
    if (spec->wdir != NULL && chdir(spec->wdir) < 0)
        child_fail(failure, STEP_WDIR);
    set_ignored(SIG_DFL);
    sigprocmask(SIG_SETMASK, spec->mask, NULL);
    if (spec->traceable)
        prctl(PR_SET_PTRACER, parent); /* without Yama the kernel does not know this */
    /* A signal that came between this and the end of exec would stop us, and our parent in vfork.
     * We cannot block it: exec keeps the mask. Nobody has been told of this process yet. */
    if (spec->stop_at_start && ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        child_fail(failure, STEP_TRACE);
    child_exec(spec, failure);
}

/* Until it stops, or ends; what has come is left for whoever waits for it. */
static bool await_stop(pid_t pid)
{
    siginfo_t info = {.si_code = 0};
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
}

/* A program that is traced stops as soon as it has replaced ours, which is when vfork() returns. It
 * is let go with a signal that stops it before it does anything: then nobody traces it. */
static void leave_stopped(pid_t pid)
{
    if (await_stop(pid) && ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)SIGSTOP) == 0)
        await_stop(pid);
}

static int cannot_enter(const char *wdir, int errnum, struct error *err)
{
    error_errno(err, errnum,
                "cannot enter the working directory %s (choose another one with --wdir)", wdir);
    if (err != NULL)
        err->status = STATUS_LAUNCHER;
    return -1;
}

int child_check_wdir(const char *wdir, struct error *err)
{
    struct stat info;
    if (wdir == NULL)
        return 0;
    bool is_there = stat(wdir, &info) == 0;
    if (is_there && !S_ISDIR(info.st_mode))
        return cannot_enter(wdir, ENOTDIR, err);
    if (!is_there || faccessat(AT_FDCWD, wdir, X_OK, AT_EACCESS) < 0)
        return cannot_enter(wdir, errno, err);
    return 0;
}

#define FIRST_BYTES 256        /* Linux reads no more to find the kind of a program */
#define FIRST_BYTES_OF_ALL 128 /* before 5.1 */

static size_t read_file(void *context, uint64_t offset, void *out, size_t length)
{
    const int *fd = context;
    ssize_t got = fd_pread(*fd, out, length, (off_t)offset);
    return got > 0 ? (size_t)got : 0;
}

/* The name between "#!" and the next blank, or NULL. */
static char *name_in_script(const char *line, size_t length)
{
    const char *end = memchr(line, '\n', length);
    length = end != NULL ? (size_t)(end - line) : length;
    size_t at = 2;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    size_t begin = at;
    while (at < length && line[at] != ' ' && line[at] != '\t' && line[at] != '\0')
        at++;
    return at > begin ? mem_strndup(line + begin, at - begin) : NULL;
}

/* Returns the name, which the caller frees, or NULL: it names none. */
static char *interpreter_name(int fd, bool *script)
{
    char line[FIRST_BYTES];
    ssize_t got = fd_pread(fd, line, sizeof(line), 0);
    *script = got > 2 && line[0] == '#' && line[1] == '!';
    if (*script)
        return name_in_script(line, (size_t)got);
    struct elf_info info;
    const struct elf_source source = {.read = read_file, .context = &fd};
    if (elf_read(&source, &info) < 0)
        return NULL;
    char *name = mem_strdup(info.interpreter);
    elf_info_destroy(&info);
    return name;
}

static bool is_usable(const char *name, const char *wdir)
{
    bool relative = name[0] != '/' && wdir != NULL;
    char *path AUTO_FREE = relative ? mem_printf("%s/%s", wdir, name) : mem_strdup(name);
    return access(path, X_OK) == 0;
}

static int say_return(const char *path, const char *name, struct error *err)
{
    return error_set(err,
                     "cannot execute %s: its first line ends with a carriage return, as text files "
                     "of Windows do, so the system looks for '%s\\r' instead of %s; remove the "
                     "carriage returns with sed -i 's/\\r$//' '%s'",
                     path, name, name, path);
}

static int say(const char *path, char *name, bool script, int errnum, struct error *err)
{
    size_t length = strlen(name);
    if (script && name[length - 1] == '\r') {
        name[length - 1] = '\0';
        say_return(path, name, err);
    } else if (script) {
        error_errno(err, errnum, "cannot execute %s: its first line names the interpreter %s", path,
                    name);
    } else {
        error_errno(err, errnum,
                    "cannot execute %s: it was built for another system and needs the loader %s",
                    path, name);
    }
    if (err != NULL)
        err->errnum = errnum;
    return -1;
}

/* execve() of `path` has failed with `errnum`, in the folder `wdir` (NULL: the present one).
 * -1: the interpreter is the reason, and `err` says so. 0: it is not, or cannot be read; `err` is
 * unchanged. */
static int interpreter_explain(const char *path, const char *wdir, int errnum, struct error *err)
{
    bool script = false;
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    char *name AUTO_FREE = fd < 0 ? NULL : interpreter_name(fd, &script);
    if (name == NULL || is_usable(name, wdir))
        return 0;
    return say(path, name, script, errnum, err);
}

pid_t child_spawn(const struct child_spec *spec, bool *in_exec, struct error *err)
{
    volatile struct failure failure = {STEP_NONE, 0};
    pid_t parent = getpid();
    pid_t pid = vfork();
    if (pid == 0)
        child_main(spec, parent, &failure);
    if (in_exec != NULL)
        *in_exec = failure.step == STEP_EXEC;
    if (pid > 0 && failure.step == STEP_NONE) {
        if (spec->stop_at_start)
            leave_stopped(pid);
        return pid;
    }
    int errnum = pid < 0 ? errno : failure.errnum;
    if (failure.step == STEP_WDIR) /* it has changed since child_check_wdir() */
        return cannot_enter(spec->wdir, errnum, err);
    const char *hint = "";
    if (pid < 0 && errnum == EAGAIN)
        hint = " (check the limit of processes: ulimit -u, and that of the container)";
    if (failure.step == STEP_TRACE)
        hint = " (kernel.yama.ptrace_scope above 1 may forbid it, or the container)";
    if (failure.step != STEP_EXEC || interpreter_explain(spec->path, spec->wdir, errnum, err) == 0)
        error_errno(err, errnum, "cannot %s %s%s", step_names[failure.step], spec->path, hint);
    if (err != NULL)
        err->status = errnum == ENOENT && failure.step == STEP_EXEC ? STATUS_NOT_FOUND
                                                                    : STATUS_NOT_EXECUTABLE;
    return -1;
}

char *child_end_text(const char *name, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return mem_printf("%s was killed by signal %d (%s)", name, WTERMSIG(wait_status),
                          strsignal(WTERMSIG(wait_status)));
    AUTO_BUF struct buf code = BUF_INIT(64);
    status_text(WEXITSTATUS(wait_status), &code);
    return mem_printf("%s ended with %s", name, buf_text(&code));
}

/* 0, or the errno that says why `path` cannot be executed. */
static int check_executable(const char *path)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return errno;
    if (S_ISDIR(info.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static char *not_executable(const char *path, int errnum, struct error *err)
{
    error_errno(err, errnum, "cannot execute %s", path);
    if (err != NULL)
        err->status =
            errnum == ENOENT || errnum == ENOTDIR ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    return NULL;
}

/* The path of `command` in a folder of PATH ("" is the current one). The child will be in `wdir`
 * when it executes it, so with a `wdir` (NULL: none) the path is absolute. */
static char *path_of(const char *folder, int length, const char *command, const char *wdir)
{
    char *path = mem_printf("%.*s%s%s", length, folder, length == 0 ? "" : "/", command);
    if (path[0] == '/' || wdir == NULL)
        return path;
    char *inside AUTO_FREE = path;
    char *here AUTO_FREE = wdir[0] == '/' ? NULL : getcwd(NULL, 0);
    return mem_printf("%s%s%s/%s", here == NULL ? "" : here, here == NULL ? "" : "/", wdir, inside);
}

/* Offers the programs of a folder. */
static void offer_folder(const char *folder, struct suggest *suggest)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != suggest->typed[0])
            continue;
        char *path AUTO_FREE = mem_printf("%s/%s", folder, entry->d_name);
        if (check_executable(path) == 0)
            suggest_offer(suggest, entry->d_name);
    }
    closedir(dir);
}

/* "b:4", of `-H a:4 b:4` */
static bool is_like_host(const char *command)
{
    const char *colon = strrchr(command, ':');
    return colon != NULL && colon > command && colon[1] != '\0' &&
           colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

/* "pyhton3" is not there, but "python3" is. People seldom mistype the first letter. */
static int not_found(const char *command, const char *search, struct error *err)
{
    struct suggest suggest;
    suggest_init(&suggest, command, strlen(command));
    for (const char *at = search; *at != '\0';) {
        size_t length = strcspn(at, ":");
        char *folder AUTO_FREE = mem_strndup(at, length);
        offer_folder(folder, &suggest);
        at += length + (at[length] == ':');
    }
    const char *near = suggest_best(&suggest);
    return error_status(err, STATUS_NOT_FOUND, "'%s' was not found in PATH%s%s%s%s", command,
                        near == NULL ? "" : ": did you mean '", near == NULL ? "" : near,
                        near == NULL ? "" : "'?",
                        is_like_host(command) ? "; if it is a host, write -H a:4,b:4" : "");
}

/* The first one that can be executed. NULL: none, and *denied is the first one that may not be.
 * What a folder has that we may not search is not known. */
static char *search_for(const char *command, const char *search, const char *wdir, char **denied)
{
    for (const char *at = search; *command != '\0';) {
        size_t length = strcspn(at, ":");
        char *path = path_of(length == 0 ? "." : at, length == 0 ? 1 : (int)length, command, wdir);
        int errnum = check_executable(path);
        if (errnum == 0)
            return path;
        if (errnum == EACCES && *denied == NULL && access(path, F_OK) == 0)
            *denied = mem_strdup(path);
        mem_free_at(&path);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return NULL;
}

char *child_in_path(const char *command)
{
    const char *search = getenv("PATH");
    char *denied AUTO_FREE = NULL;
    return search_for(command, search != NULL ? search : _PATH_DEFPATH, NULL, &denied);
}

char *child_find(const char *command, const char *search, const char *wdir, struct error *err)
{
    char *denied AUTO_FREE = NULL;
    if (strchr(command, '/') != NULL) {
        char *path = path_of("", 0, command, wdir);
        int errnum = check_executable(path);
        if (errnum == 0)
            return path;
        not_executable(path, errnum, err);
        mem_free_at(&path);
        return NULL;
    }
    if (search == NULL)
        search = _PATH_DEFPATH;
    char *found = search_for(command, search, wdir, &denied);
    if (found != NULL || err == NULL) /* to look for what it resembles takes long */
        return found;
    if (denied != NULL)
        return not_executable(denied, EACCES, err);
    char *near AUTO_FREE = path_of(".", 1, command, wdir);
    int errnum = check_executable(near);
    size_t length = strlen(command);
    bool script = length > 3 && strcmp(command + length - 3, ".py") == 0;
    if (errnum != 0 && errnum != EACCES)
        (void)not_found(command, search, err);
    else
        error_status(err, STATUS_NOT_FOUND, "'%s' was not found in PATH; write %s%s%s", command,
                     script ? "python3 " : "./", command,
                     script ? "" : " for the file in this folder");
    return NULL;
}

char *interpreter_line(const char *path)
{
    char line[FIRST_BYTES_OF_ALL];
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = fd < 0 ? -1 : fd_pread(fd, line, sizeof(line), 0);
    const char *end = got > 2 ? memchr(line, '\n', (size_t)got) : NULL;
    if (end == NULL || strncmp(line, "#!", 2) != 0)
        return NULL;
    const char *begin = line + 2;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return mem_strndup(begin, (size_t)(end - begin));
}

int interpreter_check_env(const char *path, struct error *err)
{
    static const char env[] = "/env ";
    char line[FIRST_BYTES + 1];
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = fd < 0 ? -1 : fd_pread(fd, line, FIRST_BYTES, 0);
    line[got > 0 ? got : 0] = '\0';
    char *end = strchr(line, '\n');
    const char *name = strstr(line, env);
    if (strncmp(line, "#!", 2) != 0 || end == NULL || end[-1] != '\r' || name == NULL || name > end)
        return 0;
    end[-1] = '\0';
    name = strrchr(name, ' ') + 1;
    say_return(path, name, err);
    if (err != NULL)
        err->status = STATUS_NOT_FOUND;
    return -1;
}
