/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/program.h"

#define PASSPHRASE_VARIABLE "HVDRUN_PASSPHRASE_FILE" /* the path, for our askpass */

/* Asked again after a wrong answer, it has no other one: without this, ssh-add would ask for ever.
 */
static const char askpass[] = "#!/bin/sh\n"
                              "case $1 in Bad*) exit 1 ;; esac\n"
                              "IFS= read -r line <\"$" PASSPHRASE_VARIABLE "\" || "
                              "[ -n \"$line\" ] || exit 1\n"
                              "printf '%s\\n' \"$line\"\n";

struct ssh_agent {
    const struct transport_room *room;
    struct loop_fd *watch; /* what the agent prints once it listens */
    struct loop_timer *timer;
    struct program *adding;
    pid_t pid;
    int output_fd, socket_fd, askpass_fd;
    char *folder; /* until the socket is open; NULL */
    char *socket;
    char *passphrase_file;
    char *why;
    struct strv files;
    void (*done)(void *context, const char *why);
    void *context;
};

static void remove_folder(struct ssh_agent *agent)
{
    if (agent->folder == NULL)
        return;
    char *path AUTO_FREE = mem_printf("%s/agent", agent->folder);
    unlink(path);
    rmdir(agent->folder);
    mem_free_at(&agent->folder);
    agent->folder = NULL;
}

void ssh_agent_destroy(struct ssh_agent *agent)
{
    if (agent == NULL)
        return;
    program_cancel(agent->adding);
    if (agent->pid > 0)
        helpers_let_go(agent->room->helpers, agent->pid);
    loop_fd_destroy(agent->watch);
    loop_timer_destroy(agent->timer);
    fd_close(&agent->output_fd);
    fd_close(&agent->socket_fd);
    fd_close(&agent->askpass_fd);
    remove_folder(agent);
    free(agent->socket);
    free(agent->passphrase_file);
    free(agent->why);
    strv_destroy(&agent->files);
    free(agent);
}

/* Tells from the loop, by the timer. */
static void finish(struct ssh_agent *agent, char *why)
{
    if (agent->why == NULL)
        agent->why = why;
    else
        free(why);
    loop_fd_watch(agent->watch, 0);
    loop_timer_set(agent->timer, 0);
}

static void added(void *context, const struct program_result *result)
{
    struct ssh_agent *agent = context;
    agent->adding = NULL;
    char *why = NULL;
    if (result->why != NULL && result->status < 0)
        why = mem_strdup(result->why);
    else if (result->why != NULL)
        why = mem_printf("ssh-add: %s (is it the passphrase in %s?)", result->last_line,
                         agent->passphrase_file);
    agent->done(agent->context, why);
    free(why);
}

static void add_keys(struct ssh_agent *agent)
{
    extern char **environ;
    struct strv argv AUTO_STRV = STRV_INIT, envp AUTO_STRV = STRV_INIT;
    char *program AUTO_FREE = mem_printf("/proc/%d/fd/%d", (int)getpid(), agent->askpass_fd);
    strv_copy(&envp, environ);
    strv_env_set(&envp, "SSH_AUTH_SOCK", agent->socket);
    strv_env_set(&envp, "SSH_ASKPASS", program);
    strv_env_set(&envp, "SSH_ASKPASS_REQUIRE", "force");
    strv_env_set(&envp, PASSPHRASE_VARIABLE, agent->passphrase_file);
    strv_add(&argv, "ssh-add");
    strv_add(&argv, "-q");
    strv_add(&argv, "--");
    strv_copy(&argv, strv_items(&agent->files));
    const struct program_spec spec = {.loop = agent->room->loop,
                                      .helpers = agent->room->helpers,
                                      .argv = strv_items(&argv),
                                      .envp = strv_items(&envp),
                                      .output_max = 4096,
                                      .time_max_ms = agent->room->limit_ms};
    agent->adding = program_start(&spec, added, agent);
}

/* It prints its variables once it listens. */
static void agent_ready(void *context, int what)
{
    (void)what;
    struct ssh_agent *agent = context;
    char bytes[512];
    ssize_t got = fd_read(agent->output_fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EAGAIN)
        return;
    loop_fd_watch(agent->watch, 0);
    if (got <= 0) {
        finish(agent, mem_strdup("ssh-agent ended at once"));
        return;
    }
    char *path AUTO_FREE = mem_printf("%s/agent", agent->folder);
    agent->socket_fd = fd_open(path, O_PATH | O_CLOEXEC, 0);
    if (agent->socket_fd < 0) {
        finish(agent,
               mem_printf("cannot open the socket of ssh-agent: %s", strerrordesc_np(errno)));
        return;
    }
    remove_folder(agent);
    agent->socket = mem_printf("/proc/%d/fd/%d", (int)getpid(), agent->socket_fd);
    loop_timer_clear(agent->timer);
    add_keys(agent);
}

static void timer_fire(void *context)
{
    struct ssh_agent *agent = context;
    loop_fd_watch(agent->watch, 0);
    agent->done(agent->context, agent->why != NULL ? agent->why : "ssh-agent does not answer");
}

static void exited(void *context, int wait_status)
{
    (void)wait_status;
    struct ssh_agent *agent = context;
    agent->pid = 0;
}

static int make_folder(struct ssh_agent *agent, struct error *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    for (int i = 0; i < 2; i++, base = "/tmp") {
        if (base == NULL || base[0] != '/' || strlen(base) > 60) /* a socket's path is short */
            continue;
        agent->folder = mem_printf("%s/hvdrun-keys-XXXXXX", base);
        if (mkdtemp(agent->folder) != NULL)
            return 0;
        mem_free_at(&agent->folder);
        agent->folder = NULL;
    }
    return error_errno(err, errno, "cannot make a folder for ssh-agent under /tmp");
}

static int make_askpass(struct ssh_agent *agent, struct error *err)
{
    agent->askpass_fd = memfd_create("askpass", MFD_CLOEXEC);
    if (agent->askpass_fd < 0 || fd_write_all(agent->askpass_fd, askpass, sizeof(askpass) - 1) < 0)
        return error_errno(err, errno, "cannot make the helper that answers ssh-add");
    /* A file that is open for writing cannot be executed. */
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", agent->askpass_fd);
    int read_only = fd_open(path, O_RDONLY | O_CLOEXEC, 0);
    fd_close(&agent->askpass_fd);
    agent->askpass_fd = read_only;
    return read_only < 0 ? error_errno(err, errno, "cannot open %s", path) : 0;
}

static int start(struct ssh_agent *agent, struct error *err)
{
    char *path AUTO_FREE = child_find("ssh-agent", getenv("PATH"), NULL, err);
    if (path == NULL || make_folder(agent, err) < 0 || make_askpass(agent, err) < 0)
        return -1;
    int out[2];
    int null_fd AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (null_fd < 0 || fd_pipe(out) < 0)
        return error_errno(err, errno, "cannot start ssh-agent");
    char *socket AUTO_FREE = mem_printf("%s/agent", agent->folder);
    char *const argv[] = {"ssh-agent", "-D", "-a", socket, NULL};
    sigset_t mask;
    sigemptyset(&mask);
    const struct child_spec spec = {.path = path,
                                    .argv = argv,
                                    .fds = {null_fd, out[1], null_fd},
                                    .keep_fd = -1,
                                    .die_with_parent = true,
                                    .no_set_id = true,
                                    .mask = &mask};
    pid_t pid = helpers_start(agent->room->helpers, &spec, exited, agent, err);
    fd_close(&out[1]);
    agent->output_fd = out[0];
    if (pid < 0)
        return -1;
    agent->pid = pid;
    fd_nonblock(agent->output_fd);
    agent->watch = loop_fd_create(agent->room->loop, agent->output_fd, agent_ready, agent);
    loop_fd_watch(agent->watch, LOOP_READ);
    return 0;
}

struct ssh_agent *ssh_agent_start(const struct transport_room *room, char *const *files,
                                  const char *passphrase_file,
                                  void (*done)(void *context, const char *why), void *context)
{
    struct ssh_agent *agent = mem_alloc(sizeof(*agent));
    *agent = (struct ssh_agent){.room = room,
                                .output_fd = -1,
                                .socket_fd = -1,
                                .askpass_fd = -1,
                                .passphrase_file = mem_strdup(passphrase_file),
                                .done = done,
                                .context = context};
    strv_copy(&agent->files, files);
    agent->timer = loop_timer_create(room->loop, timer_fire, agent);
    struct error err = ERROR_INIT;
    bool started = start(agent, &err) == 0;
    if (!started)
        agent->why = mem_strdup(err.text);
    loop_timer_set(agent->timer, started ? room->limit_ms : 0);
    return agent;
}

const char *ssh_agent_socket(const struct ssh_agent *agent)
{
    return agent->socket;
}
