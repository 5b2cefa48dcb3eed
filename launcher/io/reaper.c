/* SPDX-License-Identifier: Apache-2.0 */
#include "io/reaper.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"

struct reaper {
    void (*exited)(void *context, const struct reaper_exit *exit);
    void *context;
};

struct reaper *reaper_create(void (*exited)(void *context, const struct reaper_exit *exit),
                             void *context)
{
    struct reaper *reaper = mem_alloc(sizeof(*reaper));
    *reaper = (struct reaper){exited, context};
    return reaper;
}

void reaper_destroy(struct reaper *reaper)
{
    free(reaper);
}

void reaper_collect(struct reaper *reaper)
{
    struct reaper_exit exit;
    do {
        exit.pid = wait4(-1, &exit.wait_status, WNOHANG, &exit.usage);
        if (exit.pid > 0) {
            exit.when_ns = clock_mono_ns();
            reaper->exited(reaper->context, &exit);
        }
    } while (exit.pid > 0 || (exit.pid < 0 && errno == EINTR));
}

bool reaper_has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}
