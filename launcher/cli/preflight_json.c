/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"

#define RESULT_MAX ((size_t)256 << 20)
#define SHOWN_MAX 5

/* Without what is for the job alone: its records, and how it ends. */
static void become_check(struct command_line *line)
{
    struct settings *settings = &line->settings;
    line->check.wanted = line->check.gpu = line->check.json = true;
    line->check.net = false;
    line->check.python = "python3";
    settings->report = settings->events = settings->on_event = settings->metrics = NULL;
    settings->metrics_file = settings->metrics_targets = settings->page_file = NULL;
    settings->launch_trace = settings->evidence = settings->log_dir = NULL;
    settings->detach = false;
    settings->timeout = 0;
}

static _Noreturn void child(const struct command_line *line, preflight_check *check, void *context,
                            int out, pid_t parent)
{
    struct command_line own = *line; /* never freed: the process ends */
    struct error err = ERROR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || fd_dup2(out, STDOUT_FILENO) < 0)
        _exit(STATUS_LAUNCHER);
    become_check(&own);
    int status = check(context, &own, &err);
    if (status < 0)
        fprintf(stderr, "hvdrun: --leave-out-bad: %s\n", err.text);
    _exit(status < 0 ? STATUS_LAUNCHER : status);
}

static int run_check(const struct command_line *line, preflight_check *check, void *context,
                     struct buf *out, struct error *err)
{
    AUTO_FD_PAIR int ends[2] = {-1, -1};
    int status = 0;
    pid_t self = getpid();
    if (fd_pipe(ends) < 0)
        return error_errno(err, errno, "cannot create a pipe");
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, errno, "cannot start a process");
    if (pid == 0)
        child(line, check, context, ends[1], self);
    fd_close(&ends[1]);
    int result = fd_read_rest(ends[0], out);
    (void)!TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
    int ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended > 128) /* most likely the user's Ctrl-C */
        return error_status(err, ended, "--leave-out-bad: the check was ended by signal %d",
                            ended - 128);
    if (result < 0 || out->length == 0)
        return error_status(err, STATUS_LAUNCHER,
                            "--leave-out-bad: the check of the hosts gave no "
                            "result; see what 'hvdrun check --gpu' says");
    return 0;
}

struct leaving {
    const json_t *findings;
    struct buf *told;
    int count;
};

/* The first finding because of which this host is left out. */
static const char *why_bad(const json_t *findings, const char *name)
{
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *one = json_array_get(findings, i);
        const char *host = json_string_value(json_object_get(one, "host"));
        bool bad = json_is_true(json_object_get(one, "bad")) ||
                   (json_is_true(json_object_get(one, "fatal")) &&
                    !json_is_true(json_object_get(one, "pair"))); /* the other end may be bad */
        if (bad && host != NULL && strcmp(host, name) == 0)
            return json_string_value(json_object_get(one, "text"));
    }
    return NULL;
}

static bool is_bad(void *context, const char *name)
{
    struct leaving *leaving = context;
    const char *why = why_bad(leaving->findings, name);
    if (why == NULL)
        return false;
    char *plain AUTO_FREE = mem_strdup(why);
    plain_line(plain, ' ');
    if (leaving->count < SHOWN_MAX)
        buf_printf(leaving->told, "%s%s (%s)", leaving->count > 0 ? ", " : "", name, plain);
    leaving->count++;
    return true;
}

int preflight_leave_out(const struct command_line *line, preflight_check *check, void *context,
                        struct host_list *hosts, struct buf *told, struct error *err)
{
    struct buf text AUTO_BUF = BUF_INIT(RESULT_MAX);
    if (run_check(line, check, context, &text, err) < 0)
        return -1;
    json_t *root = json_loadb(buf_text(&text), text.length, 0, NULL);
    struct leaving leaving = {.findings = json_object_get(root, "findings"), .told = told};
    if (leaving.findings == NULL) {
        json_decref(root);
        return error_status(err, STATUS_LAUNCHER,
                            "--leave-out-bad: the result of the check cannot be read");
    }
    size_t before = told->length;
    buf_printf(told, "%s--leave-out-bad leaves out ", before > 0 ? "; " : "");
    hosts_leave_out(hosts, is_bad, &leaving);
    if (leaving.count > SHOWN_MAX)
        buf_printf(told, " and %d more", leaving.count - SHOWN_MAX);
    if (leaving.count == 0)
        buf_truncate(told, before);
    json_decref(root);
    return 0;
}
