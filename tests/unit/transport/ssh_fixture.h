/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An sshd of the test's own on 127.0.0.1, with keys, known_hosts and configuration in a temporary
 * folder, and calls to it. This program is also the agent that is sent: it echoes what it reads.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
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
#include "io/helpers.h"
#include "io/reaper.h"
#include "loop_fixture.h"
#include "transport/boot/agent_image.h"
#include "transport/transports.h"

struct rig {
    char root[64];
    int port;
    pid_t sshd;
    bool made_run_sshd;
    char *user, *config;
    struct loop *loop;
    struct loop_signals *signals;
    struct reaper *reaper;
    struct helpers *helpers;
    struct agent_image image;
    struct transport_room room;
    struct ssh_settings settings;
    struct ssh_transport *ssh;
};

/* One call and what it reported. */
struct heard {
    struct rig *rig;
    struct transport_target target;
    struct transport_call *call;
    int *waited_for; /* calls that are not over yet; the loop stops with the last */
    int up, failed, lost;
    int fd;
    char peer[64];
    enum transport_stage stage;
    char stages[256], why[1024], notes[4096];
};

static inline void heard_append(char *text, size_t room, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, room - length, "%s|", more);
}

static inline void heard_over(struct heard *heard)
{
    if (heard->waited_for != NULL && --*heard->waited_for == 0)
        loop_stop(heard->rig->loop);
}

static inline void heard_stage(void *context, enum transport_stage stage)
{
    struct heard *heard = context;
    heard_append(heard->stages, sizeof(heard->stages), transport_stage_name(stage));
}

static inline void heard_up(void *context, const struct transport_stream *stream)
{
    struct heard *heard = context;
    heard->up++;
    heard->fd = stream->read_fd;
    snprintf(heard->peer, sizeof(heard->peer), "%s", stream->peer);
    if (stream->write_fd != stream->read_fd)
        close(stream->write_fd);
    heard_over(heard);
}

static inline void heard_failed(void *context, enum transport_stage stage, const char *why)
{
    struct heard *heard = context;
    heard->failed++;
    heard->stage = stage;
    snprintf(heard->why, sizeof(heard->why), "%s", why);
    heard_over(heard);
}

static inline void heard_lost(void *context, const char *why)
{
    struct heard *heard = context;
    heard->lost++;
    snprintf(heard->why, sizeof(heard->why), "%s", why);
}

static inline void heard_note(void *context, enum log_level level, const char *line)
{
    (void)level;
    struct heard *heard = context;
    heard_append(heard->notes, sizeof(heard->notes), line);
}

static const struct transport_events heard_events = {.stage = heard_stage,
                                                     .up = heard_up,
                                                     .failed = heard_failed,
                                                     .lost = heard_lost,
                                                     .note = heard_note};

static inline char *rig_path(const struct rig *rig, const char *name)
{
    return mem_printf("%s/%s", rig->root, name);
}

static inline void rig_write(const struct rig *rig, const char *name, const char *text)
{
    char *path AUTO_FREE = rig_path(rig, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static inline char *rig_read(const struct rig *rig, const char *name)
{
    char *path AUTO_FREE = rig_path(rig, name);
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    return fd_read_file(path, &text, NULL) < 0 ? mem_strdup("") : buf_take(&text);
}

/* Runs a program to its end; its exit status. */
static inline int rig_run(char *const *argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_RDWR);
        dup2(null_fd, 0);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        execvp(argv[0], argv);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static inline void rig_key(const struct rig *rig, const char *name, const char *type,
                           const char *passphrase)
{
    char *path AUTO_FREE = rig_path(rig, name);
    char *argv[] = {"ssh-keygen",       "-q", "-t", (char *)type, "-N",
                    (char *)passphrase, "-f", path, NULL};
    assert_int_equal(rig_run(argv), 0);
}

/* A port that was free a moment ago. */
static inline int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static inline bool port_answers(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return answers;
}

/* -1: this machine cannot run one (it is not installed, or not for us). */
static inline int sshd_start(struct rig *rig, const char *max_startups)
{
    if (access("/usr/sbin/sshd", X_OK) < 0)
        return -1;
    if (getuid() == 0 && mkdir("/run/sshd", 0755) == 0)
        rig->made_run_sshd = true;
    rig->port = free_port();
    char *text AUTO_FREE = mem_printf(
        "Port %d\nListenAddress 0.0.0.0\nHostKey %s/host\nPidFile none\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nStrictModes no\n"
        "AuthorizedKeysFile %s/authorized\nAuthorizedKeysCommandUser %s\nMaxStartups %s\nLogLevel "
        "QUIET\n"
        "SetEnv TMPDIR=%s/tmp XDG_CACHE_HOME=%s/cache XDG_RUNTIME_DIR=%s/tmp "
        "ASAN_OPTIONS=detect_leaks=0 SHLVL=2\n", /* bash reads no ~/.bashrc */
        rig->port, rig->root, rig->root, rig->user, max_startups, rig->root, rig->root, rig->root);
    rig_write(rig, "sshd_config", text);
    char *config AUTO_FREE = rig_path(rig, "sshd_config");
    rig->sshd = fork();
    if (rig->sshd == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null_fd = open("/dev/null", O_RDWR);
        dup2(null_fd, 0);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", config, NULL);
        _exit(127);
    }
    for (int i = 0; i < 4000; i++) {
        if (port_answers(rig->port))
            return 0;
        if (waitpid(rig->sshd, NULL, WNOHANG) == rig->sshd) {
            rig->sshd = 0;
            break;
        }
        usleep(25000);
    }
    return -1;
}

static inline void rig_signal(void *context, int signal, int sender)
{
    (void)signal, (void)sender;
    struct rig *rig = context;
    reaper_collect(rig->reaper);
}

static inline void rig_exited(void *context, const struct reaper_exit *exit)
{
    struct rig *rig = context;
    helpers_exited(rig->helpers, exit);
}

/* `more` goes before the configuration that is common to all. */
static inline void rig_configure(struct rig *rig, const char *more)
{
    char *text AUTO_FREE = mem_printf(
        "%s\nHost *\n  Port %d\n  User %s\n  IdentityFile %s/user\n  IdentityAgent none\n"
        "  IdentitiesOnly yes\n  UserKnownHostsFile %s/known_hosts\n"
        "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking accept-new\n",
        more, rig->port, rig->user, rig->root, rig->root);
    rig_write(rig, "config", text);
}

/* More lines of sshd's configuration may follow `max_startups`. */
static inline int rig_open(struct rig *rig, const char *module_path, const char *max_startups)
{
    *rig = (struct rig){.sshd = 0};
    snprintf(rig->root, sizeof(rig->root), "/tmp/hvd-ssh-XXXXXX");
    assert_non_null(mkdtemp(rig->root));
    rig->user = mem_strdup(getpwuid(getuid())->pw_name);
    char *tmp AUTO_FREE = rig_path(rig, "tmp"), *cache AUTO_FREE = rig_path(rig, "cache");
    mkdir(tmp, 0700);
    mkdir(cache, 0700);
    rig_key(rig, "host", "ed25519", "");
    rig_key(rig, "user", "ed25519", "");
    char *public AUTO_FREE = rig_read(rig, "user.pub");
    rig_write(rig, "authorized", public);
    if (sshd_start(rig, max_startups) < 0)
        return -1;
    rig_configure(rig, "");
    rig->config = rig_path(rig, "config");
    rig->loop = loop_create(NULL);
    rig->reaper = reaper_create(rig_exited, rig);
    rig->signals = loop_signals_create(rig->loop, (int[]){SIGCHLD, 0}, rig_signal, rig, NULL);
    rig->helpers = helpers_create();
    struct error err = ERROR_INIT;
    if (agent_image_open("/proc/self/exe", &rig->image, &err) < 0)
        fail_msg("%s", err.text);
    rig->room = (struct transport_room){.loop = rig->loop,
                                        .helpers = rig->helpers,
                                        .image = &rig->image,
                                        .job_id = "test",
                                        .limit_ms = 100000, /* no test waits for its end */
                                        .silence_ms = 100000};
    rig->settings = (struct ssh_settings){
        .room = &rig->room, .module_path = module_path, .window = 64, .config_file = rig->config};
    rig->ssh = ssh_transport_create(&rig->settings);
    return 0;
}

static inline void rig_close(struct rig *rig)
{
    ssh_transport_destroy(rig->ssh);
    helpers_destroy(rig->helpers);
    agent_image_close(&rig->image);
    loop_signals_destroy(rig->signals);
    reaper_destroy(rig->reaper);
    loop_destroy(rig->loop);
    if (rig->sshd > 0) {
        kill(rig->sshd, SIGTERM);
        while (waitpid(rig->sshd, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (rig->made_run_sshd)
        rmdir("/run/sshd");
    char *argv[] = {"rm", "-rf", rig->root, NULL};
    rig_run(argv);
    free(rig->user);
    free(rig->config);
}

static inline void rig_call(struct rig *rig, struct heard *heard, const char *host, int node,
                            int *waited_for)
{
    struct transport transport = ssh_transport(rig->ssh);
    *heard = (struct heard){
        .rig = rig, .target = {.host = host, .node = node}, .waited_for = waited_for, .fd = -1};
    heard->call = transport_call(&transport, &heard->target, &heard_events, heard);
    assert_int_equal(heard->up + heard->failed + (heard->stages[0] != '\0'), 0);
}

/* One call until it is up or has failed. */
static inline void rig_call_one(struct rig *rig, struct heard *heard, const char *host)
{
    int one = 1;
    rig_call(rig, heard, host, 0, &one);
    run_loop(rig->loop);
    heard->waited_for = NULL;
}

static inline void heard_hang_up(struct heard *heard)
{
    transport_hang_up(heard->call);
    heard->call = NULL;
    fd_close(&heard->fd);
}

/* This program as the agent: says the marker, greets on stderr, echoes; "Q" ends it with 7. */
static inline int be_agent(const char *marker)
{
    static char bytes[65536];
    printf("%s agent\n", marker);
    fflush(stdout);
    fprintf(stderr, "greetings\n");
    for (;;) {
        ssize_t got = read(0, bytes, sizeof(bytes));
        if (got <= 0)
            return 0;
        if (bytes[0] == 'Q')
            return 7;
        if (fd_write_all(1, bytes, (size_t)got) < 0)
            return 1;
    }
}
