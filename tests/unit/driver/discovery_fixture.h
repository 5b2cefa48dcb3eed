/* SPDX-License-Identifier: Apache-2.0 */
/* A discovery over a real loop, with its files in a folder of its own. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "driver/elastic/discovery.h"
#include "helpers_fixture.h"

#define NEVER_MS 600000 /* far beyond the test's limit */

struct fixture {
    char root[64];
    struct helper_loop children;
    struct log log;
    struct buf logged; /* lines */
    struct discovery *discovery;
    int lists, failures;  /* that have come */
    int stop_after;       /* so many of both together */
    bool first;           /* of the last failure */
    bool destroy_in_call; /* when told something */
    char list[4096];      /* the last: "a:4 b:2" */
    char why[ERROR_TEXT_MAX];
};

static inline void told(struct fixture *f)
{
    if (f->destroy_in_call) {
        discovery_destroy(f->discovery);
        f->discovery = NULL;
    }
    if (f->lists + f->failures >= f->stop_after)
        loop_stop(f->children.loop);
}

static inline void told_hosts(void *context, const struct host_list *hosts)
{
    struct fixture *f = context;
    size_t length = 0;
    f->lists++;
    f->list[0] = '\0';
    for (size_t i = 0; i < hosts->count && length < sizeof(f->list); i++)
        length += (size_t)snprintf(f->list + length, sizeof(f->list) - length, "%s%s:%d",
                                   i > 0 ? " " : "", hosts->items[i].name, hosts->items[i].slots);
    told(f);
}

static inline void told_failure(void *context, const char *why, bool first)
{
    struct fixture *f = context;
    f->failures++;
    f->first = first;
    assert_null(strchr(why, '\n'));
    snprintf(f->why, sizeof(f->why), "%s", why);
    told(f);
}

static const struct discovery_ops fixture_ops = {.hosts = told_hosts, .failed = told_failure};

static inline void log_line(void *context, enum log_level level, const char *line)
{
    struct fixture *f = context;
    assert_int_equal(level, LOG_INFO);
    buf_printf(&f->logged, "%s\n", line);
}

static inline int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    snprintf(f->root, sizeof(f->root), "/tmp/hvd-discovery-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    helper_loop_open(&f->children);
    buf_init(&f->logged, 1 << 20);
    f->log = (struct log){LOG_INFO, log_line, f};
    *state = f;
    return 0;
}

/* Runs a line of shell in the test's folder; it must succeed. */
static inline void shell(const struct fixture *f, const char *line)
{
    char *command AUTO_FREE = mem_printf("cd %s && { %s\n}", f->root, line);
    int wait_status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t nothing;
        sigemptyset(&nothing);
        sigprocmask(SIG_SETMASK, &nothing, NULL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    if (wait_status != 0)
        fail_msg("'%s' ended with status %d", line, wait_status);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    discovery_destroy(f->discovery);
    helper_loop_expect_idle(&f->children);
    helper_loop_close(&f->children);
    buf_destroy(&f->logged);
    shell(f, "cd / && rm -r \"$OLDPWD\"");
    free(f);
    return 0;
}

static inline char *in_root(const struct fixture *f, const char *name)
{
    return mem_printf("%s/%s", f->root, name);
}

static inline void write_file(const struct fixture *f, const char *name, const char *text, int mode)
{
    char *path AUTO_FREE = in_root(f, name);
    int fd AUTO_FD = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* The loop runs until so many more lists and failures have come. */
static inline void wait_told(struct fixture *f, int more)
{
    f->stop_after = f->lists + f->failures + more;
    run_loop(f->children.loop);
}

/* The loop runs for a while; nothing may come. */
static inline void expect_silence(struct fixture *f, int64_t ms)
{
    int before = f->lists + f->failures;
    struct run run = {.loop = f->children.loop};
    f->stop_after = before + 1;
    run.timer = loop_timer_create(f->children.loop, run_expired, &run);
    loop_timer_set(run.timer, ms);
    loop_run(f->children.loop);
    loop_timer_destroy(run.timer);
    if (f->lists + f->failures != before)
        fail_msg("told '%s' or '%s'", f->list, f->why);
}

/* How often the script has run, if each run adds a line to the file `runs`. */
static inline int count_runs(const struct fixture *f)
{
    char *path AUTO_FREE = in_root(f, "runs");
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    int lines = 0;
    if (fd_read_file(path, &text, NULL) < 0)
        return 0;
    for (const char *at = buf_text(&text); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

/* The loop runs until the script has run to its end at least `runs` times more; nothing may come.
 */
static inline void expect_silent_runs(struct fixture *f, int runs)
{
    int before = count_runs(f), now = before;
    int64_t limit_ms = unit_limit_ms(RUN_LIMIT_MS);
    while (now <= before + runs && !unit_is_over(limit_ms)) { /* the first may have begun before */
        expect_silence(f, 20);
        now = count_runs(f);
    }
    assert_true(now > before + runs);
}

static inline void expect_list(struct fixture *f, const char *list)
{
    int before = f->failures;
    wait_told(f, 1);
    if (f->failures != before)
        fail_msg("'%s' instead of '%s'", f->why, list);
    assert_string_equal(f->list, list);
}

static inline void expect_failure(struct fixture *f, bool first, const char *part)
{
    int before = f->lists;
    wait_told(f, 1);
    if (f->lists != before)
        fail_msg("'%s' instead of '%s'", f->list, part);
    if (strstr(f->why, part) == NULL)
        fail_msg("\"%s\" lacks '%s'", f->why, part);
    assert_int_equal(f->first, first);
}
