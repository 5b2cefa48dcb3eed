/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gpus_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/child.h"

#define WSL_FOLDER "/usr/lib/wsl/lib"
#define ANSWER_MAX \
    ((size_t)64 << 10) /* what a pipe holds, which is read when the program is gone */

struct gpus_ask {
    struct loop_timer *timer;
    pid_t pid; /* 0: it has ended, or was given up */
    int fd;    /* what it says */
    void (*answered)(void *context, int gpus);
    void *context;
};

static bool has_driver(const char *root)
{
    char *control AUTO_FREE = mem_printf("%s/dev/nvidiactl", root);
    char *wsl AUTO_FREE = mem_printf("%s/dev/dxg", root);
    return access(control, F_OK) == 0 || access(wsl, F_OK) == 0;
}

char *gpus_ask_program(const char *root, const char *search)
{
    if (!has_driver(root))
        return NULL;
    char *path AUTO_FREE =
        search == NULL ? mem_strdup(WSL_FOLDER) : mem_printf("%s:" WSL_FOLDER, search);
    return child_find("nvidia-smi", path, NULL, NULL);
}

static void kill_program(struct gpus_ask *ask)
{
    if (ask->pid > 0)
        kill(-ask->pid, SIGKILL); /* it has a session of its own */
    ask->pid = 0;
}

static void limit_over(void *context)
{
    struct gpus_ask *ask = context;
    kill_program(ask);
    ask->answered(ask->context, 0);
}

static int spawn(struct gpus_ask *ask, const char *program, struct error *err)
{
    char *const argv[] = {(char *)"nvidia-smi", (char *)"-L", NULL};
    int ends[2];
    if (fd_pipe(ends) < 0)
        return error_errno(err, errno, "cannot ask %s", program);
    int out AUTO_FD = ends[1], null_fd AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    ask->fd = ends[0];
    fd_nonblock(ask->fd);
    if (null_fd < 0)
        return error_errno(err, errno, "cannot open /dev/null");
    sigset_t mask; /* ours blocks what the loop hands out */
    sigemptyset(&mask);
    const struct child_spec spec = {.path = program,
                                    .argv = argv,
                                    .envp = environ,
                                    .fds = {null_fd, out, null_fd},
                                    .keep_fd = -1,
                                    .die_with_parent = true,
                                    .mask = &mask,
                                    .script_shell = "/bin/sh"};
    ask->pid = child_spawn(&spec, NULL, err);
    return ask->pid < 0 ? -1 : 0;
}

struct gpus_ask *gpus_ask_create(struct loop *loop, const char *program, int64_t limit_ms,
                                 void (*answered)(void *context, int gpus), void *context,
                                 struct error *err)
{
    struct gpus_ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct gpus_ask){.fd = -1, .answered = answered, .context = context};
    if (spawn(ask, program, err) < 0) {
        gpus_ask_destroy(ask);
        return NULL;
    }
    ask->timer = loop_timer_create(loop, limit_over, ask);
    loop_timer_set(ask->timer, limit_ms);
    return ask;
}

void gpus_ask_destroy(struct gpus_ask *ask)
{
    if (ask == NULL)
        return;
    kill_program(ask);
    loop_timer_destroy(ask->timer);
    fd_close(&ask->fd);
    free(ask);
}

/* Lines "GPU 0: NVIDIA H100 (UUID: GPU-...)"; MIG devices stand in lines of their own below. */
static int count_gpus(int fd)
{
    struct buf text AUTO_BUF = BUF_INIT(ANSWER_MAX);
    char bytes[4096];
    ssize_t got = fd_read(fd, bytes, sizeof(bytes));
    while (got > 0 && buf_append(&text, bytes, (size_t)got) == 0)
        got = fd_read(fd, bytes, sizeof(bytes));
    int count = 0;
    for (const char *line = buf_text(&text); line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        count += strncmp(line, "GPU ", 4) == 0;
    }
    return count;
}

bool gpus_ask_exited(struct gpus_ask *ask, const struct reaper_exit *exit)
{
    if (ask == NULL || ask->pid == 0 || exit->pid != ask->pid)
        return false;
    ask->pid = 0;
    loop_timer_clear(ask->timer);
    bool well = WIFEXITED(exit->wait_status) && WEXITSTATUS(exit->wait_status) == 0;
    ask->answered(ask->context, well ? count_gpus(ask->fd) : 0);
    return true;
}
