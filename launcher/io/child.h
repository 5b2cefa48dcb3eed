/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a child process by vfork + exec.
 *
 * The child begins a session of its own. It gets descriptors 0, 1, 2 and at most one more, since
 * all others are close-on-exec. It gets the user's signal mask and soft limits. Unless it is to
 * last, it gets SIGKILL when the thread that spawned it ends. So only a thread may call this that
 * lives as long as its children may. The parent can die before prctl() takes effect. The check of
 * getppid() after it closes that gap. vfork copies nothing, and the parent waits until the program
 * runs. So a failed exec comes back as an error that names the step that failed.
 */
#pragma once

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"

struct child_limit {
    int resource; /* RLIMIT_* */
    rlim_t soft;
};

struct child_spec {
    const char *path; /* resolved: PATH is not searched */
    char *const *argv;
    char *const *envp;
    const char *wdir;          /* NULL: where we are */
    int fds[3];                /* what becomes 0, 1 and 2 */
    int keep_fd;               /* one more descriptor; -1: none */
    int keep_as;               /* its number in the child (> 2); 0: its own */
    bool controlling_terminal; /* fds[0] is a terminal that becomes the session's */
    bool lasting;              /* it survives when we are killed, and ends on its own */
    bool traceable;       /* other children of ours may attach to it, also where Yama is strict */
    bool stop_at_start;   /* it stops (SIGSTOP) at the first instruction of the program */
    const sigset_t *mask; /* for the child */
    const struct child_limit *limits; /* soft limits to set */
    size_t limit_count;
    const cpu_set_t *cpus;    /* NULL: inherited */
    size_t cpus_size;         /* bytes of `cpus` */
    const char *script_shell; /* runs the file when the kernel says ENOEXEC, as execvp(3) does */
};

/* Can a child begin in this folder? 0, also for NULL; or -1 with STATUS_LAUNCHER, as child_spawn()
 * says it of a folder that the child cannot enter. */
int child_check_wdir(const char *wdir, struct error *err);

/* A reader that has gone, and a file as large as its limit, no longer end this process. They become
 * errors of write(), EPIPE and EFBIG. Children get the default back. */
void child_ignore_signals(void);

/* The pid, or -1: err->errnum says why and the text which step failed. `*in_exec` (may be NULL)
 * tells whether it was the exec itself. */
pid_t child_spawn(const struct child_spec *spec, bool *in_exec, struct error *err);

/* "NAME ended with exit status 1" or "NAME was killed by signal 9 (Killed)". The caller's. */
char *child_end_text(const char *name, int wait_status);

/* Finds `command` as execvp(3) would that is called in folder `wdir` (NULL: where we are), along
 * `search` (a PATH value; NULL: the default one). Returns the path (the caller's; absolute when
 * `wdir` is given, since the child goes there first) or NULL, with STATUS_NOT_FOUND or
 * STATUS_NOT_EXECUTABLE. */
char *child_find(const char *command, const char *search, const char *wdir, struct error *err);

/* Finds a program, without a slash in its name, along our own PATH. The caller's; NULL: it is not
 * there. */
char *child_in_path(const char *command);

/*
 * The interpreter that a program names: of a script the one behind "#!" (execve(2)), of an ELF
 * program its dynamic loader. The system answers ENOENT or EACCES for a program whose interpreter
 * it cannot execute, although the program itself exists. Only after such an answer it is looked at
 * here: before, a handler of binfmt_misc could still execute the program without it.
 */

/* What is behind "#!" in the first line of a script, without blanks at its ends. The caller's;
 * NULL: there is no such line, or it is longer than all systems read. */
char *interpreter_line(const char *path);

/* "#!/usr/bin/env NAME" and a carriage return: env exists, and would look for "NAME\r". -1: so it
 * is, and `err` says so. */
int interpreter_check_env(const char *path, struct error *err);
