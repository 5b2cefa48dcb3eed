/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/orphans.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/helpers.h"
#include "node/descendants.h"
#include "node/held_child.h"

#define AGAIN_MS 20
#define LEAVING_MS 5 /* of an agent from the end of its link to that of its process */
#define KILLED_MS 1

struct orphans {
    struct job *job;
    struct loop_timer *again;
};

/* A live agent, or a program that keeps the connection to one. */
static bool is_ours(const struct job *job, pid_t pid)
{
    for (int i = 0; i < job->node_count; i++) {
        if (pid > 0 && job->nodes[i]->stream.pid == pid)
            return node_link_alive(job->nodes[i]); /* also when it is one of the helpers */
    }
    return pid > 0 && helpers_has(job->helpers, pid);
}

/* Kills every descendant except our agents, our helpers and their descendants. Returns how many
 * there were. */
static size_t kill_orphans(const struct job *job)
{
    AUTO_FREE pid_t *all = NULL;
    size_t count = descendants_list(getpid(), &all);
    size_t orphans = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_ours(job, all[i])) {
            AUTO_FREE pid_t *spared = NULL;
            size_t below = descendants_list(all[i], &spared);
            for (size_t j = 0; j < below; j++) {
                for (size_t k = i + 1; k < count; k++)
                    all[k] = all[k] == spared[j] ? 0 : all[k];
            }
        } else if (all[i] > 0) {
            kill(all[i], SIGKILL);
            orphans++;
        }
    }
    return orphans;
}

static void sweep_again(void *context)
{
    orphans_sweep(context);
}

struct orphans *orphans_create(struct job *job)
{
    struct orphans *orphans = mem_alloc(sizeof(*orphans));
    *orphans = (struct orphans){.job = job};
    orphans->again = loop_timer_create(job->loop, sweep_again, orphans);
    return orphans;
}

void orphans_destroy(struct orphans *orphans)
{
    if (orphans == NULL)
        return;
    loop_timer_destroy(orphans->again);
    free(orphans);
}

void orphans_sweep(struct orphans *orphans)
{
    reaper_collect(orphans->job->reaper);
    if (kill_orphans(orphans->job) > 0)
        loop_timer_set(orphans->again, AGAIN_MS);
}

/* Reaps children for at most that long; false: children remain. A SIGCHLD that comes now is
 * consumed here: it is blocked, and the loop has nothing left to reap. */
static bool collect_all(const struct job *job, int64_t patience_ms)
{
    int64_t until = clock_mono_ms() + patience_ms;
    const struct timespec moment = {.tv_nsec = patience_ms * 1000000};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    reaper_collect(job->reaper);
    while (reaper_has_children()) {
        if (clock_mono_ms() >= until)
            return false;
        sigtimedwait(&child, NULL, &moment);
        reaper_collect(job->reaper);
    }
    return true;
}

bool orphans_end(struct orphans *orphans, int64_t limit_ms)
{
    const struct job *job = orphans->job;
    int64_t limit = clock_mono_ms() + limit_ms;
    struct held_children held = {0};
    bool all = collect_all(job, LEAVING_MS);
    while (!all && !held_children_only(&held)) {
        helpers_kill_overdue(job->helpers);
        if (clock_mono_ms() > limit)
            return false;
        kill_orphans(job);
        all = collect_all(job, KILLED_MS);
    }
    return true;
}
