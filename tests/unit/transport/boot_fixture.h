/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests: a shell on this machine behind a socketpair, with folders of its own. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "loop_fixture.h"
#include "transport/boot/boot.h"
#include "wire/frame.h"

struct host {
    char root[64]; /* holds tmp, home, run, bin */
    struct strv env;
};

struct call {
    struct loop *loop;
    struct boot *boot;
    int fd;
    pid_t pid;
    int *open_calls; /* of several; the loop stops with the last */
    int ups, fails, sends;
    enum transport_stage stage;
    char why[ERROR_TEXT_MAX];
};

/* Runs a line of shell; its exit status. */
static inline int run_line(const char *line)
{
    int wait_status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128;
}

static inline void remove_tree(const char *path)
{
    char *command AUTO_FREE =
        mem_printf("chmod -R u+rwX '%s' 2>/dev/null; rm -rf '%s'", path, path);
    assert_int_equal(run_line(command), 0);
}

static inline char *host_path(const struct host *host, const char *name)
{
    return mem_printf("%s/%s", host->root, name);
}

static inline void host_open(struct host *host)
{
    snprintf(host->root, sizeof(host->root), "/tmp/hvd-boot-XXXXXX");
    assert_non_null(mkdtemp(host->root));
    host->env = (struct strv)STRV_INIT;
    static const char *const folders[] = {"tmp", "home", "run", "bin"};
    for (size_t i = 0; i < 4; i++) {
        char *path AUTO_FREE = host_path(host, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    strv_printf(&host->env, "PATH=%s/bin:/usr/local/bin:/usr/bin:/bin", host->root);
    strv_printf(&host->env, "TMPDIR=%s/tmp", host->root);
    strv_printf(&host->env, "HOME=%s/home", host->root);
    strv_printf(&host->env, "XDG_RUNTIME_DIR=%s/run", host->root);
    strv_add(&host->env, "ASAN_OPTIONS=detect_leaks=0");
}

static inline void host_close(struct host *host)
{
    strv_destroy(&host->env);
    remove_tree(host->root);
}

/* A program of this host's own, first in PATH. */
static inline void host_program(const struct host *host, const char *name, const char *text)
{
    char *path AUTO_FREE = mem_printf("%s/bin/%s", host->root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

/* What the host's own programs have noted in `used` since the last time. */
static inline void host_expect_used(const struct host *host, const char *expected)
{
    char *path AUTO_FREE = host_path(host, "used");
    struct buf used AUTO_BUF = BUF_INIT(4096);
    assert_int_equal(fd_read_file(path, &used, NULL), 0);
    assert_string_equal(buf_text(&used), expected);
    unlink(path);
}

/* The image's name in a folder, or NULL; fails when there is more than that. The caller frees. */
static inline char *host_find(const struct host *host, const char *folder)
{
    char *path AUTO_FREE = host_path(host, folder);
    DIR *dir = opendir(path);
    char *found = NULL;
    struct dirent *entry = dir == NULL ? NULL : readdir(dir);
    for (; entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strncmp(entry->d_name, "checked-", 8) == 0)
            continue;
        if (found != NULL)
            fail_msg("%s and %s in %s", found, entry->d_name, path);
        assert_true(strncmp(entry->d_name, "hvdrun-agent-", 13) == 0);
        found = mem_printf("%s/%s", path, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

static inline void call_over(struct call *call)
{
    if (call->open_calls == NULL || --*call->open_calls == 0)
        loop_stop(call->loop);
}

static inline void call_stage(void *context, enum transport_stage stage)
{
    struct call *call = context;
    call->stage = stage;
    call->sends += stage == STAGE_SEND;
}

static inline void call_up(void *context)
{
    struct call *call = context;
    call->ups++;
    call_over(call);
}

static inline void call_failed(void *context, enum transport_stage stage, const char *why)
{
    struct call *call = context;
    call->fails++;
    call->stage = stage;
    snprintf(call->why, sizeof(call->why), "%s", why);
    call_over(call);
}

static inline void call_begin(struct call *call, struct loop *loop, const struct host *host,
                              struct agent_image *image, char *const *argv, int64_t limit_ms)
{
    static const struct boot_events events = {call_stage, call_up, call_failed};
    int ends[2];
    *call = (struct call){.loop = loop, .open_calls = call->open_calls};
    assert_int_equal(fd_socketpair(ends), 0);
    call->pid = fork();
    assert_true(call->pid >= 0);
    if (call->pid == 0) {
        int null_fd = open("/dev/null", O_RDWR);
        dup2(ends[1], 0);
        dup2(ends[1], 1);
        dup2(getenv("BOOT_STDERR") != NULL ? 2 : null_fd, 2);
        signal(SIGPIPE, SIG_DFL);
        execve(argv[0], argv, strv_items(&host->env));
        _exit(127);
    }
    close(ends[1]);
    call->fd = ends[0];
    struct boot_config config = {
        .loop = loop, .fd = call->fd, .image = image, .unique = "job/1", .limit_ms = limit_ms};
    call->boot = boot_create(&config, &events, call);
}

/* The first frame must be the next thing on the stream. */
static inline void call_expect_hello(struct call *call)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    struct frame_header header;
    struct error err = ERROR_INIT;
    assert_int_equal(recv(call->fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
    assert_int_equal(frame_header_get(bytes, &header, &err), 0);
    assert_int_equal(header.type, FRAME_HELLO);
}

/* Hangs up and waits for what was started. Returns its wait status. */
static inline int call_end(struct call *call)
{
    int wait_status;
    boot_destroy(call->boot);
    close(call->fd);
    assert_int_equal(waitpid(call->pid, &wait_status, 0), call->pid);
    return wait_status;
}
