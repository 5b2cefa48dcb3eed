/* SPDX-License-Identifier: Apache-2.0 */
#include "features/debug/session_program_agent.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/child.h"
#include "io/proc.h"

#define ENVIRON_MAX ((size_t)4 << 20)
#define PATH_ROOM 4096
#define CAP_SYS_PTRACE_BIT 19

extern char **environ;

/* Its working directory, the caller's; NULL: it cannot be read. */
static char *find_wdir(pid_t pid)
{
    char path[PATH_ROOM], *link AUTO_FREE = mem_printf("/proc/%ld/cwd", (long)pid);
    ssize_t length = readlink(link, path, sizeof(path));
    return length > 0 && (size_t)length < sizeof(path) ? mem_strndup(path, (size_t)length) : NULL;
}

/* With the worker's environment as it was started, or this agent's. */
static int make_env(const Hvdrun__SessionRequest *request, pid_t worker, struct strv *env,
                    struct error *err)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRON_MAX);
    bool as_worker = worker != 0 && !request->debugger;
    if (as_worker && !proc_read(worker, 0, "environ", &text))
        return error_set(err, "cannot read the environment of the rank (process %ld)",
                         (long)worker);
    for (size_t at = 0; at < text.length; at += strlen(buf_text(&text) + at) + 1)
        strv_add(env, buf_text(&text) + at);
    if (!as_worker)
        strv_copy(env, environ);
    strv_env_unset(env, "LINES");
    strv_env_unset(env, "COLUMNS");
    strv_env_set(env, "TERM", request->term[0] != '\0' ? request->term : "dumb");
    return 0;
}

static const char *find_shell(const struct strv *env)
{
    const char *shell = strv_env_get(env, "SHELL");
    return shell != NULL && shell[0] == '/' && access(shell, X_OK) == 0 ? shell : "/bin/sh";
}

/* The path of the debugger; the caller's. */
static char *find_debugger(const char **with, const char *search, const char *host,
                           struct error *err)
{
    static const char *const known[] = {"gdb", "lldb"};
    bool any = (*with)[0] == '\0';
    for (size_t i = 0; i < 2; i++) {
        char *path =
            any || strcmp(*with, known[i]) == 0 ? child_find(known[i], search, NULL, NULL) : NULL;
        if (path != NULL) {
            *with = known[i];
            return path;
        }
    }
    if (any)
        error_set(err,
                  "%s has neither gdb nor lldb: install one of them there, or name a debugger "
                  "with --with COMMAND, such as --with 'py-spy dump --pid {pid}'",
                  host);
    else
        error_set(err,
                  "%s has no %s in PATH: install it there, or name another debugger with "
                  "--with COMMAND",
                  host, *with);
    return NULL;
}

/* Where Yama wants a capability, the debugger would only say "Operation not permitted". With 3 none
 * helps, and nobody can lower that. */
static int check_yama(const char *host, struct error *err)
{
    struct buf scope AUTO_BUF = BUF_INIT(64), status AUTO_BUF = BUF_INIT(1 << 16);
    if (fd_read_file("/proc/sys/kernel/yama/ptrace_scope", &scope, NULL) < 0 ||
        buf_text(&scope)[0] < '2' || !proc_read(getpid(), 0, "status", &status))
        return 0;
    bool never = buf_text(&scope)[0] > '2';
    const char *caps = strstr(buf_text(&status), "\nCapEff:");
    if (!never && caps != NULL && (strtoull(caps + 8, NULL, 16) >> CAP_SYS_PTRACE_BIT & 1) != 0)
        return 0;
    return error_set(err, "%s lets no debugger attach (kernel.yama.ptrace_scope is %c): %s", host,
                     buf_text(&scope)[0],
                     never ? "only a reboot of that host with another setting can change this"
                           : "as root, use 'sysctl kernel.yama.ptrace_scope=1' there");
}

/* The path of the program, the caller's, and its words. */
static char *make_debugger(const Hvdrun__SessionRequest *request,
                           const struct session_worker *worker, const char *search,
                           struct strv *argv, struct error *err)
{
    const char *with = request->with, *host = request->host;
    bool is_command = with[0] != '\0' && strcmp(with, "gdb") != 0 && strcmp(with, "lldb") != 0;
    char *path = is_command ? mem_strdup("/bin/sh") : find_debugger(&with, search, host, err);
    if (path != NULL && !is_command && check_yama(host, err) < 0)
        mem_free_at(&path);
    if (path != NULL)
        debug_line(with, worker->pid, worker->is_stopped, argv);
    return path;
}

static char *make_shell(const Hvdrun__SessionRequest *request, const struct strv *env,
                        const char *wdir, struct strv *argv, struct error *err)
{
    for (size_t i = 0; i < request->n_argv; i++)
        strv_add(argv, request->argv[i]);
    if (request->n_argv == 0)
        strv_add(argv, find_shell(env));
    return child_find(argv->items[0], strv_env_get(env, "PATH"), wdir, err);
}

int session_program_make(const Hvdrun__SessionRequest *request, const struct session_worker *worker,
                         struct session_program *out, struct error *err)
{
    *out = (struct session_program){.argv = STRV_INIT, .env = STRV_INIT};
    if (make_env(request, worker->pid, &out->env, err) < 0)
        return -1;
    out->wdir = worker->pid == 0 ? NULL : find_wdir(worker->pid);
    if (child_check_wdir(out->wdir, NULL) < 0)
        mem_free_at(&out->wdir);
    out->path = request->debugger ? make_debugger(request, worker, strv_env_get(&out->env, "PATH"),
                                                  &out->argv, err)
                                  : make_shell(request, &out->env, out->wdir, &out->argv, err);
    return out->path == NULL ? -1 : 0;
}

void session_program_destroy(struct session_program *program)
{
    strv_destroy(&program->argv);
    strv_destroy(&program->env);
    free(program->path);
    free(program->wdir);
}

#define LINE_MAX_BYTES ((size_t)1 << 20)

static void put_pid(struct buf *out, const char *with, pid_t pid)
{
    for (const char *at = with; *at != '\0';) {
        bool is_mark = strncmp(at, "{pid}", 5) == 0;
        if (is_mark)
            buf_printf(out, "%ld", (long)pid);
        else
            buf_putc(out, *at);
        at += is_mark ? 5 : 1;
    }
}

static void put_gdb(struct strv *out, const char *command)
{
    strv_add(out, "-iex");
    strv_add(out, command);
}

void debug_line(const char *with, pid_t pid, bool is_stopped, struct strv *out)
{
    bool is_gdb = strcmp(with, "gdb") == 0;
    if (!is_gdb && strcmp(with, "lldb") != 0) {
        struct buf line AUTO_BUF = BUF_INIT(LINE_MAX_BYTES);
        put_pid(&line, with, pid);
        strv_add(out, "/bin/sh");
        strv_add(out, "-c");
        strv_add(out, buf_text(&line));
        return;
    }
    strv_add(out, with);
    if (is_gdb) {
        strv_add(out, "-q");
        put_gdb(out, "set confirm off"); /* to quit detaches: there is nothing to confirm */
    }
    if (is_gdb && is_stopped)
        put_gdb(out, "handle SIGSTOP nostop noprint nopass");
    strv_add(out, "-p");
    strv_printf(out, "%ld", (long)pid);
}
