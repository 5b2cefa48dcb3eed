/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/keeper.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "node/runtime_dir.h"

#define AGAIN_MS 1
#define PATIENCE_MS 10000

struct control_keeper {
    int line; /* the driver writes a byte at its end; end of file without it: the driver died */
};

/* The folder stays locked until the kernel has closed the last descriptor of its owner. Only
 * then do the children of the owner get another parent. */
static void sweep_after(pid_t driver)
{
    for (int waited = 0; getppid() == driver && waited < PATIENCE_MS; waited += AGAIN_MS)
        poll(NULL, 0, AGAIN_MS);
    runtime_dir_sweep();
}

static void keep(pid_t driver, int line)
{
    char byte;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "hvdrun-folder");
    fd_close_others(line);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    if (fd_read(line, &byte, 1) == 0)
        sweep_after(driver);
}

struct control_keeper *control_keeper_create(struct helpers *helpers)
{
    int ends[2];
    if (fd_pipe(ends) < 0)
        return NULL;
    pid_t driver = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[1]);
        keep(driver, ends[0]);
        _exit(0);
    }
    fd_close(&ends[0]);
    if (pid < 0) {
        fd_close(&ends[1]);
        return NULL;
    }
    helpers_adopt(helpers, pid);
    struct control_keeper *keeper = mem_alloc(sizeof(*keeper));
    keeper->line = ends[1];
    return keeper;
}

void control_keeper_destroy(struct control_keeper *keeper)
{
    if (keeper == NULL)
        return;
    fd_write_all(keeper->line, "", 1);
    fd_close(&keeper->line);
    free(keeper);
}
