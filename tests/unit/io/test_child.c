/* SPDX-License-Identifier: Apache-2.0 */
/* The children are this program again: with a first argument it reports how it was started. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "io/child.h"
#include "unit.h"

#define SELF "/proc/self/exe"

extern char **environ;

static int report(int argc, char **argv)
{
    char folder[256] = "";
    sigset_t mask;
    struct rlimit files;
    struct sigaction pipe_action, size_action;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    getrlimit(RLIMIT_NOFILE, &files);
    sigaction(SIGPIPE, NULL, &pipe_action);
    sigaction(SIGXFSZ, NULL, &size_action);
    printf("argv");
    for (int i = 0; i < argc; i++)
        printf(" [%s]", argv[i]);
    printf("\nenv");
    for (char **pair = environ; *pair != NULL; pair++)
        printf(" [%s]", *pair);
    printf("\nfds");
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf(" %d", fd);
    }
    printf("\nleader %d\n", getsid(0) == getpid() && getpgrp() == getpid());
    printf("mask");
    for (int signal = 1; signal < SIGRTMIN; signal++) {
        if (sigismember(&mask, signal) == 1)
            printf(" %d", signal);
    }
    printf("\nsigpipe %s\n", pipe_action.sa_handler == SIG_DFL ? "default" : "other");
    printf("sigxfsz %s\n", size_action.sa_handler == SIG_DFL ? "default" : "other");
    printf("files %llu\n", (unsigned long long)files.rlim_cur);
    printf("wdir %s\n", getcwd(folder, sizeof(folder)) == NULL ? "?" : folder);
    fflush(stdout);
    fprintf(stderr, "on stderr\n");
    return 0;
}

/* This program is the child that the tests start. */
int unit_called_otherwise(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    char byte;
    if (strcmp(argv[1], "terminal") == 0) {
        int tty = open("/dev/tty", O_RDWR);
        printf("terminal %d\n", tty >= 0 && tcgetsid(0) == getpid() && isatty(1) && isatty(2));
        return 0;
    }
    if (strcmp(argv[1], "wait") == 0)
        return read(0, &byte, 1) < 0;
    return report(argc, argv);
}

struct fixture {
    char folder[64];
    sigset_t mask;
    int null_fd;
    int out[2];
    struct child_spec spec;
    char *argv[8];
    char *envp[8];
    struct buf said;
};

static void put_file(const struct fixture *f, const char *name, const char *text, mode_t mode)
{
    char *path AUTO_FREE = mem_printf("%s/%s", f->folder, name);
    int fd AUTO_FD = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.folder = "/tmp/test_child.XXXXXX", .said = BUF_INIT(100000)};
    if (mkdtemp(f.folder) == NULL || fd_pipe(f.out) < 0)
        return -1;
    sigemptyset(&f.mask);
    f.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    f.argv[0] = "name";
    f.argv[1] = "report";
    f.spec = (struct child_spec){.path = SELF,
                                 .argv = f.argv,
                                 .envp = f.envp,
                                 .fds = {f.null_fd, f.out[1], f.out[1]},
                                 .keep_fd = -1,
                                 .mask = &f.mask};
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fd_close(&f->null_fd);
    fd_close(&f->out[0]);
    fd_close(&f->out[1]);
    buf_destroy(&f->said);
    char *argv[] = {"rm", "-r", f->folder, NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        execvp("rm", argv);
        _exit(1);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void read_all(int fd, struct buf *out)
{
    char chunk[4096];
    ssize_t got = fd_read(fd, chunk, sizeof(chunk));
    for (; got > 0; got = fd_read(fd, chunk, sizeof(chunk)))
        buf_append(out, chunk, (size_t)got);
}

/* Starts it, reads what it says until it has ended, and returns how. */
static int run(struct fixture *f)
{
    struct error err = ERROR_INIT;
    pid_t pid = child_spawn(&f->spec, NULL, &err);
    assert_string_equal(err.text, "");
    assert_true(pid > 0);
    fd_close(&f->out[1]);
    read_all(f->out[0], &f->said);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void said(const struct fixture *f, const char *line)
{
    if (strstr(buf_text(&f->said), line) == NULL)
        fail_msg("no '%s' in: %s", line, buf_text(&f->said));
}

static void test_arguments_and_environment(void **state)
{
    struct fixture *f = *state;
    f->argv[2] = "";
    f->argv[3] = "two words";
    f->envp[0] = "A=1";
    f->envp[1] = "EMPTY=";
    assert_int_equal(run(f), 0);
    said(f, "argv [name] [report] [] [two words]\n");
    said(f, "env [A=1] [EMPTY=]\n");
}

static void test_only_three_descriptors(void **state)
{
    struct fixture *f = *state;
    int extra[2];
    assert_int_equal(fd_pipe(extra), 0);
    assert_int_equal(run(f), 0);
    said(f, "fds 0 1 2\n");
    said(f, "on stderr\n");
    fd_close(&extra[0]);
    fd_close(&extra[1]);
}

static void test_one_more_descriptor(void **state)
{
    struct fixture *f = *state;
    int extra = fcntl(f->null_fd, F_DUPFD_CLOEXEC, 200);
    f->spec.keep_fd = extra;
    assert_int_equal(run(f), 0);
    said(f, "fds 0 1 2 200\n");
    assert_true((fcntl(extra, F_GETFD) & FD_CLOEXEC) != 0); /* of ours it stays close-on-exec */
    fd_close(&extra);
}

static char *link_of(int fd)
{
    char path[64], target[128];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof(target));
    return mem_strndup(target, length < 0 ? 0 : (size_t)length);
}

/* What becomes 0, 1 and 2 may itself be 0, 1 or 2, in any order: each of them gets its own. Done in
 * a process of its own, whose 0, 1, 2 are three different pipes. */
static int shuffled(void)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1},
                                    {2, 1, 0}, {1, 1, 1}, {2, 2, 0}, {0, 0, 0}, {9, 0, 1},
                                    {1, 9, 0}, {2, 1, 9}, {9, 9, 9}};
    sigset_t mask;
    char *envp[] = {NULL};
    sigemptyset(&mask);
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (fd_pipe(ends) < 0 || dup2(ends[0], i) < 0)
            return 1;
    }
    if (dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 9) < 0)
        return 1;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        char script[600];
        char *names[3];
        for (int n = 0; n < 3; n++)
            names[n] = link_of(orders[i][n]);
        snprintf(script, sizeof(script),
                 "for n in 0 1 2; do set -- \"$@\" \"$(readlink /proc/$$/fd/$n)\"; done\n"
                 "[ \"$*\" = \"%s %s %s\" ]",
                 names[0], names[1], names[2]);
        char *argv[] = {"sh", "-c", script, NULL};
        struct child_spec spec = {.path = "/bin/sh",
                                  .argv = argv,
                                  .envp = envp,
                                  .fds = {orders[i][0], orders[i][1], orders[i][2]},
                                  .keep_fd = -1,
                                  .mask = &mask};
        pid_t pid = child_spawn(&spec, NULL, NULL);
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return (int)i + 10;
        for (int n = 0; n < 3; n++)
            free(names[n]);
    }
    return 0;
}

static void test_shuffled_descriptors(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(shuffled());
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_session_mask_and_signals(void **state)
{
    struct fixture *f = *state;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ours, &before);
    struct sigaction pipe_before, size_before, size_now;
    sigaction(SIGPIPE, NULL, &pipe_before);
    sigaction(SIGXFSZ, NULL, &size_before);
    child_ignore_signals();
    sigaddset(&f->mask, SIGUSR2);
    assert_int_equal(run(f), 0);
    sigaction(SIGXFSZ, &size_before, &size_now);
    sigaction(SIGPIPE, &pipe_before, NULL);
    assert_true(size_now.sa_handler == SIG_IGN);
    sigprocmask(SIG_SETMASK, &before, NULL);
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "mask %d\n", SIGUSR2);
    said(f, wanted);
    said(f, "leader 1\n");
    said(f, "sigpipe default\n");
    said(f, "sigxfsz default\n");
}

static void test_limits(void **state)
{
    struct fixture *f = *state;
    struct child_limit limits[] = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 77}};
    f->spec.limits = limits;
    f->spec.limit_count = 2;
    struct rlimit before, after;
    getrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(run(f), 0);
    said(f, "files 77\n");
    getrlimit(RLIMIT_NOFILE, &after); /* ours are ours */
    assert_int_equal(before.rlim_cur, after.rlim_cur);
}

/* More than this node allows becomes what it allows. */
static void test_limit_above_the_hard_one(void **state)
{
    struct fixture *f = *state;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    struct child_limit limits[] = {{RLIMIT_NOFILE, RLIM_INFINITY}};
    f->spec.limits = limits;
    f->spec.limit_count = 1;
    assert_int_equal(run(f), 0);
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "files %llu\n", (unsigned long long)limit.rlim_max);
    said(f, wanted);
}

static void test_working_directory(void **state)
{
    struct fixture *f = *state;
    f->spec.wdir = f->folder;
    assert_int_equal(run(f), 0);
    char wanted[128];
    snprintf(wanted, sizeof(wanted), "wdir %s\n", f->folder);
    said(f, wanted);
}

/* Fails with this errno and status, and the text names the step and the file. */
static void fails(struct fixture *f, bool exec, int errnum, int status, const char *step,
                  const char *file)
{
    struct error err = ERROR_INIT;
    bool in_exec = !exec;
    assert_int_equal(child_spawn(&f->spec, &in_exec, &err), -1);
    assert_int_equal(in_exec, exec);
    assert_int_equal(err.errnum, errnum);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.text, step));
    assert_non_null(strstr(err.text, file));
    assert_null(strchr(err.text, '\n'));
    assert_true(waitpid(-1, NULL, 0) > 0); /* what is left of it is reaped like any child */
    assert_int_equal(child_spawn(&f->spec, NULL, NULL), -1);
    assert_true(waitpid(-1, NULL, 0) > 0);
}

static void test_exec_failures(void **state)
{
    struct fixture *f = *state;
    put_file(f, "plain", "text", 0644);
    char *plain AUTO_FREE = mem_printf("%s/plain", f->folder);
    f->spec.path = "/nonexistent/program";
    fails(f, true, ENOENT, STATUS_NOT_FOUND, "execute", "/nonexistent/program");
    f->spec.path = plain;
    fails(f, true, EACCES, STATUS_NOT_EXECUTABLE, "execute", plain);
    f->spec.path = f->folder;
    fails(f, true, EACCES, STATUS_NOT_EXECUTABLE, "execute", f->folder);
}

/* A program that exists, and names an interpreter that cannot be executed. */
static void test_interpreters(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        int errnum, status;
        const char *said;
    } cases[] = {
        {"#!/nonexistent/python3\n", ENOENT, STATUS_NOT_FOUND,
         "its first line names the interpreter /nonexistent/python3: No such file or directory"},
        {"#! \t/nonexistent/python3 -u\n", ENOENT, STATUS_NOT_FOUND,
         "names the interpreter /nonexistent/python3: No such"},
        {"#!venv/python", ENOENT, STATUS_NOT_FOUND, "names the interpreter venv/python: No such"},
        {"#!/dev/null\n", EACCES, STATUS_NOT_EXECUTABLE,
         "names the interpreter /dev/null: Permission denied"},
        {"#!/bin/sh\r\necho\r\n", ENOENT, STATUS_NOT_FOUND,
         "looks for '/bin/sh\\r' instead of /bin/sh; remove the carriage returns with sed"},
    };
    char *script AUTO_FREE = mem_printf("%s/script", f->folder);
    f->spec.path = script;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        put_file(f, "script", cases[i].text, 0755);
        fails(f, true, cases[i].errnum, cases[i].status, script, cases[i].said);
        assert_int_equal(unlink(script), 0);
    }
    put_file(f, "python", "", 0755); /* a relative one is looked for where the child is */
    put_file(f, "script", "#!./python\n", 0755);
    f->spec.wdir = f->folder;
    fails(f, true, ENOEXEC, STATUS_NOT_EXECUTABLE, "execute", script);
}

/* This program with another name of its loader. */
static void test_missing_loader(void **state)
{
    struct fixture *f = *state;
    struct buf bytes AUTO_BUF = BUF_INIT(64 << 20);
    assert_int_equal(fd_read_file(SELF, &bytes, NULL), 0);
    char *name = memmem(buf_text(&bytes), bytes.length, "/ld-", 4);
    if (name == NULL)
        skip();
    name[1] = 'X';
    char *program AUTO_FREE = mem_printf("%s/program", f->folder);
    int fd AUTO_FD = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_int_equal(fd_write_all(fd, buf_text(&bytes), bytes.length), 0);
    fd_close(&fd);
    f->spec.path = program;
    fails(f, true, ENOENT, STATUS_NOT_FOUND, "it was built for another system", "/Xd-");
}

static void test_failures_before_exec(void **state)
{
    struct fixture *f = *state;
    f->spec.fds[0] = 1000;
    fails(f, false, EBADF, STATUS_NOT_EXECUTABLE, "descriptors", SELF);
    f->spec.fds[0] = f->null_fd;
    f->spec.keep_fd = 1000;
    fails(f, false, EBADF, STATUS_NOT_EXECUTABLE, "descriptors", SELF);
    f->spec.keep_fd = -1;
    struct child_limit limits[] = {{1000, 0}};
    f->spec.limits = limits;
    f->spec.limit_count = 1;
    fails(f, false, EINVAL, STATUS_NOT_EXECUTABLE, "limit", SELF);
    f->spec.limit_count = 0;
    cpu_set_t none;
    CPU_ZERO(&none);
    f->spec.cpus = &none;
    f->spec.cpus_size = sizeof(none);
    fails(f, false, EINVAL, STATUS_NOT_EXECUTABLE, "CPUs", SELF);
    f->spec.cpus = NULL;
    f->spec.controlling_terminal = true; /* /dev/null is none */
    fails(f, false, ENOTTY, STATUS_NOT_EXECUTABLE, "session", SELF);
}

static void test_script_without_interpreter(void **state)
{
    struct fixture *f = *state;
    put_file(f, "script", "echo \"ran $0 with $# $1,$2\"\n", 0755);
    char *script AUTO_FREE = mem_printf("%s/script", f->folder);
    f->spec.path = script;
    f->argv[1] = "one";
    f->argv[2] = "two words";
    fails(f, true, ENOEXEC, STATUS_NOT_EXECUTABLE, "execute", script);
    f->spec.script_shell = "/bin/sh";
    assert_int_equal(run(f), 0);
    char *wanted AUTO_FREE = mem_printf("ran %s with 2 one,two words\n", script);
    said(f, wanted);
}

static void test_controlling_terminal(void **state)
{
    struct fixture *f = *state;
    int master, slave;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    fcntl(slave, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        f->spec.fds[i] = slave;
    f->spec.controlling_terminal = true;
    f->argv[1] = "terminal";
    pid_t pid = child_spawn(&f->spec, NULL, NULL);
    assert_true(pid > 0);
    fd_close(&slave);
    read_all(master, &f->said); /* until EIO: nobody has it open any more */
    said(f, "terminal 1");
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    fd_close(&master);
}

/* The worker waits for input that never comes; its parent is killed; it ends by SIGKILL. */
static void test_dies_with_its_parent(void **state)
{
    struct fixture *f = *state;
    int hold[2], tell[2];
    assert_int_equal(fd_pipe(hold), 0);
    assert_int_equal(fd_pipe(tell), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    f->argv[1] = "wait";
    f->spec.fds[0] = hold[0];
    pid_t helper = fork();
    if (helper == 0) {
        pid_t made = child_spawn(&f->spec, NULL, NULL);
        fd_write_all(tell[1], &made, sizeof(made));
        for (;;)
            pause();
    }
    pid_t worker = 0;
    int status = 0;
    assert_int_equal(fd_read(tell[0], &worker, sizeof(worker)), sizeof(worker));
    assert_true(worker > 0);
    assert_int_equal(kill(worker, 0), 0);
    kill(helper, SIGKILL);
    assert_int_equal(waitpid(helper, &status, 0), helper);
    assert_int_equal(waitpid(worker, &status, 0), worker);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    for (int i = 0; i < 2; i++) {
        fd_close(&hold[i]);
        fd_close(&tell[i]);
    }
}

/* Found at folder/name. */
/* As root everything is allowed: another user is not. */
static void as_somebody(bool begin)
{
    if (geteuid() == 0 || getuid() == 0)
        assert_int_equal(seteuid(begin ? 65534 : 0), 0);
}

static void no_entry(struct fixture *f, const char *wdir, const char *why)
{
    struct error found = ERROR_INIT, spawned = ERROR_INIT;
    char *text AUTO_FREE = mem_printf(
        "cannot enter the working directory %s (choose another one with --wdir): %s", wdir, why);
    f->spec.wdir = wdir;
    as_somebody(true);
    int result = child_check_wdir(wdir, &found);
    pid_t pid = child_spawn(&f->spec, NULL, &spawned);
    as_somebody(false);
    f->spec.wdir = NULL;
    assert_int_equal(result, -1);
    assert_int_equal(pid, -1);
    assert_true(waitpid(-1, NULL, 0) > 0);
    assert_string_equal(found.text, text);
    assert_string_equal(spawned.text, text);
    assert_int_equal(found.status, STATUS_LAUNCHER);
    assert_int_equal(spawned.status, STATUS_LAUNCHER);
}

/* Whatever keeps the worker out of its folder, and whenever: one text and one status. */
static void test_working_directory_refused(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    char *closed AUTO_FREE = mem_printf("%s/closed", f->folder);
    char *file AUTO_FREE = mem_printf("%s/file", f->folder);
    put_file(f, "file", "", 0644);
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(mkdir(closed, 0), 0);
    no_entry(f, "/nonexistent/folder", "No such file or directory");
    no_entry(f, file, "Not a directory");
    no_entry(f, closed, "Permission denied");
    assert_int_equal(child_check_wdir(f->folder, &err), 0);
    assert_int_equal(child_check_wdir(NULL, &err), 0);
}

static void finds(const char *command, const char *search, const char *wdir, const char *wanted)
{
    struct error err = ERROR_INIT;
    char *path AUTO_FREE = child_find(command, search, wdir, &err);
    if (path == NULL)
        fail_msg("%s: %s", command, err.text);
    assert_string_equal(path, wanted);
}

static void finds_not(const char *command, const char *search, const char *wdir, int status,
                      const char *text)
{
    struct error err = ERROR_INIT;
    assert_null(child_find(command, search, wdir, &err));
    assert_int_equal(err.status, status);
    if (strstr(err.text, text) == NULL)
        fail_msg("no '%s' in: %s", text, err.text);
    assert_null(child_find(command, search, wdir, NULL));
}

static void test_find(void **state)
{
    struct fixture *f = *state;
    char *bin AUTO_FREE = mem_printf("%s/bin", f->folder);
    char *sub AUTO_FREE = mem_printf("%s/bin/folder", f->folder);
    assert_int_equal(mkdir(bin, 0755), 0);
    assert_int_equal(mkdir(sub, 0755), 0);
    put_file(f, "bin/tool", "", 0755);
    put_file(f, "bin/denied", "", 0644);
    put_file(f, "denied", "", 0755);
    put_file(f, "own", "", 0755);
    put_file(f, "no", "", 0600);
    char *tool AUTO_FREE = mem_printf("%s/tool", bin),
               *own AUTO_FREE = mem_printf("%s/own", f->folder);
    char *list AUTO_FREE = mem_printf("/nonexistent:%s:%s", bin, f->folder);
    char *second AUTO_FREE = mem_printf("%s/denied", f->folder);
    char *denied AUTO_FREE = mem_printf("%s/denied", bin);
    finds("tool", list, NULL, tool);
    finds("own", list, "/", own);
    finds("denied", list, NULL, second); /* one that may not be executed is passed over */
    finds(own, "/nonexistent", "/", own);
    char *shell AUTO_FREE = child_find("sh", NULL, NULL, NULL); /* no PATH: the system's own */
    assert_non_null(shell);
    assert_string_equal(strrchr(shell, '/'), "/sh");
    char *same AUTO_FREE = child_in_path("sh");
    assert_string_equal(strrchr(same, '/'), "/sh");
    assert_null(child_in_path("no-such-program"));
    finds_not("denied", bin, NULL, STATUS_NOT_EXECUTABLE, denied);
    finds_not(denied, NULL, NULL, STATUS_NOT_EXECUTABLE, "denied");
    finds_not("folder", bin, NULL, STATUS_NOT_FOUND, "'folder'");
    finds_not(bin, NULL, NULL, STATUS_NOT_EXECUTABLE, bin);
    finds_not("tool", "/nonexistent", "/", STATUS_NOT_FOUND, "'tool' was not found in PATH");
    finds_not("tool", "/nonexistent", bin, STATUS_NOT_FOUND, "write ./tool for the file in this");
    finds_not("denied", "/nonexistent", bin, STATUS_NOT_FOUND, "write ./denied for the file in");
    finds_not("folder", "/nonexistent", bin, STATUS_NOT_FOUND, "not found in PATH");
    finds_not("", list, NULL, STATUS_NOT_FOUND, "PATH");
    finds_not("/nonexistent/x", NULL, NULL, STATUS_NOT_FOUND, "/nonexistent/x");
    char *under AUTO_FREE = mem_printf("%s/x", own); /* a file is no folder */
    finds_not(under, NULL, NULL, STATUS_NOT_FOUND, under);
}

/* Relative names are looked up where the child will stand, and the path is right from there. */
/* Usual in the PATH of who became another user. What such a folder has is not known, so nothing was
 * found there; a path that leads into it is said to be closed. */
static void test_find_behind_a_closed_folder(void **state)
{
    struct fixture *f = *state;
    char *closed AUTO_FREE = mem_printf("%s/closed", f->folder);
    char *tool AUTO_FREE = mem_printf("%s/tool", f->folder);
    char *inside AUTO_FREE = mem_printf("%s/tool", closed);
    char *list AUTO_FREE = mem_printf("%s:%s", closed, f->folder);
    put_file(f, "tool", "", 0755);
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(mkdir(closed, 0), 0);
    as_somebody(true);
    finds("tool", list, NULL, tool);
    finds_not("other", list, NULL, STATUS_NOT_FOUND, "'other' was not found in PATH");
    finds_not(inside, list, NULL, STATUS_NOT_EXECUTABLE, "Permission denied");
    as_somebody(false);
    assert_int_equal(rmdir(closed), 0);
}

static void test_find_relative_to_the_working_directory(void **state)
{
    struct fixture *f = *state;
    char *bin AUTO_FREE = mem_printf("%s/bin", f->folder);
    assert_int_equal(mkdir(bin, 0755), 0);
    put_file(f, "bin/tool", "", 0755);
    put_file(f, "own", "", 0755);
    char *own AUTO_FREE = mem_printf("%s/./own", f->folder);
    char *tool AUTO_FREE = mem_printf("%s/bin/tool", f->folder);
    finds("./own", NULL, f->folder, own);
    finds("bin/tool", NULL, f->folder, tool);
    finds("tool", "bin", f->folder, tool);
    finds("own", ":/nonexistent", f->folder, own);
    finds("own", "/nonexistent:", f->folder, own);
    finds("own", ".", f->folder, own);
    char here[256];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(f->folder), 0);
    finds("./own", NULL, NULL, "./own");
    finds("own", "", NULL, "./own");
    finds("tool", "bin", NULL, "bin/tool");
    char *from_here AUTO_FREE = mem_printf("%s/bin/./tool", f->folder);
    finds("./tool", NULL, "bin", from_here); /* the folder itself may be relative */
    finds_not("tool", "bin", "bin", STATUS_NOT_FOUND, "tool");
    assert_int_equal(chdir(here), 0);
    finds_not("./own", NULL, "/", STATUS_NOT_FOUND, "own");
}

/* Nobody traces it then, and it goes on when it is told to. */
static void test_a_stop_at_the_start(void **state)
{
    struct fixture *f = *state;
    siginfo_t info;
    f->spec.stop_at_start = true;
    pid_t pid = child_spawn(&f->spec, NULL, NULL);
    assert_true(pid > 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG), 0); /* already */
    assert_int_equal(info.si_code, CLD_STOPPED);
    assert_int_equal(info.si_status, SIGSTOP);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
    assert_int_equal(info.si_code, CLD_EXITED);

    f->spec.path = "/nonexistent/program"; /* never stops, and is no zombie */
    assert_int_equal(child_spawn(&f->spec, NULL, NULL), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* what the test itself was given is not looked at */
    const struct CMUnitTest tests[] = {
        TEST(test_arguments_and_environment),
        TEST(test_only_three_descriptors),
        TEST(test_one_more_descriptor),
        TEST(test_shuffled_descriptors),
        TEST(test_session_mask_and_signals),
        TEST(test_limits),
        TEST(test_limit_above_the_hard_one),
        TEST(test_working_directory),
        TEST(test_working_directory_refused),
        TEST(test_exec_failures),
        TEST(test_interpreters),
        TEST(test_missing_loader),
        TEST(test_failures_before_exec),
        TEST(test_a_stop_at_the_start),
        TEST(test_script_without_interpreter),
        TEST(test_controlling_terminal),
        TEST(test_dies_with_its_parent),
        TEST(test_find),
        TEST(test_find_behind_a_closed_folder),
        TEST(test_find_relative_to_the_working_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
