/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/end.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/part.h"
#include "io/helpers.h"
#include "node/descendants.h"

#define AGAIN_MS 20
#define LEAVING_MS 5 /* of an agent from the end of its link to that of its process */
#define KILLED_MS 1

struct orphans {
    struct loop_timer *again;
    int64_t swept_ms; /* the end of the last sweep; 0: there was none */
};

/* An agent that was forked here, or a program that keeps the connection to one. */
struct agent {
    pid_t pid;
    bool alive;
};

struct agents {
    struct agent *items; /* by pid */
    size_t count;
    const struct helpers *helpers;
};

static int by_pid(const void *a, const void *b)
{
    const struct agent *first = a, *second = b;
    return (first->pid > second->pid) - (first->pid < second->pid);
}

/* A dead agent is none of ours, even if it is one of the helpers. */
static bool is_ours(const void *context, pid_t pid)
{
    const struct agents *agents = context;
    const struct agent key = {.pid = pid}, *agent = NULL;
    if (agents->count > 0)
        agent = bsearch(&key, agents->items, agents->count, sizeof(key), by_pid);
    return agent != NULL ? agent->alive : helpers_has(agents->helpers, pid);
}

static struct agents list_agents(const struct job *job)
{
    struct agents agents = {.helpers = job_part(job, helpers)};
    agents.items = mem_array((size_t)job->node_count, sizeof(*agents.items));
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        if (node->stream.pid > 0)
            agents.items[agents.count++] = (struct agent){node->stream.pid, node_link_alive(node)};
    }
    qsort(agents.items, agents.count, sizeof(*agents.items), by_pid);
    return agents;
}

/* Kills every descendant except our agents, our helpers and their descendants. It reads nothing
 * below these, so many live agents cost little. Returns how many it killed. */
static size_t kill_orphans(const struct job *job)
{
    struct agents agents = list_agents(job);
    const struct descendants_spared spared = {is_ours, &agents};
    AUTO_FREE pid_t *all = NULL;
    size_t count = descendants_list_except(getpid(), &spared, &all);
    for (size_t i = 0; i < count; i++)
        kill(all[i], SIGKILL);
    free(agents.items);
    return count;
}

static void sweep(void *context)
{
    const struct job *job = context;
    struct orphans *orphans = job_part(job, orphans);
    reaper_collect(job->reaper);
    size_t killed = kill_orphans(job);
    log_debug(&job->log, "swept behind dead agents: killed %zu processes", killed);
    orphans->swept_ms = clock_mono_ms();
    if (killed > 0)
        loop_timer_set(orphans->again, AGAIN_MS);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job_part(job, orphans)->again = loop_timer_create(job->loop, sweep, job);
    return 0;
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, orphans)->again);
}

/* Hundreds of agents may die at once: one sweep serves all of those that have died meanwhile. */
void orphans_sweep(const struct job *job)
{
    const struct orphans *orphans = job_part(job, orphans);
    if (loop_timer_is_set(orphans->again))
        return;
    bool just_swept = orphans->swept_ms != 0 && clock_mono_ms() - orphans->swept_ms < AGAIN_MS;
    loop_timer_set(orphans->again, just_swept ? AGAIN_MS : 0);
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

bool orphans_end(const struct job *job, int64_t limit_ms)
{
    int64_t limit = clock_mono_ms() + limit_ms;
    struct held_children held = {0};
    bool all = collect_all(job, LEAVING_MS);
    while (!all && !held_children_only(&held)) {
        helpers_kill_overdue(job_part(job, helpers));
        if (clock_mono_ms() > limit)
            return false;
        kill_orphans(job);
        all = collect_all(job, KILLED_MS);
    }
    return true;
}

/* Whatever ran on this machine is killed now; the agent itself may hang. */
static void node_lost(struct job *job, struct node_link *node)
{
    if (!node->stream.same_machine)
        return;
    job->lost_here = true;
    if (node->stream.pid > 0)
        kill(node->stream.pid, SIGKILL);
    orphans_sweep(job);
}

const struct driver_part orphans_part = {.name = "orphans",
                                         .size = sizeof(struct orphans),
                                         .open = open_part,
                                         .close = close_part,
                                         .node_lost = node_lost};
