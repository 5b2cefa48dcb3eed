/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_end.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "node/descendants.h"

void worker_group_signal(pid_t group, int signal)
{
    /* Between vfork and its setsid() the child has no group of its own yet. */
    if (kill(-group, signal) < 0)
        kill(group, signal);
}

/* To what a worker that has been waited for left in its group. The group keeps its number while it
 * has members. If a process of this number runs, it is another one, and gets nothing. */
static void signal_rest(pid_t group, int signal)
{
    pid_t *all AUTO_FREE = NULL;
    size_t count = descendants_list(getpid(), &all);
    for (size_t i = 0; i < count; i++) {
        if (all[i] == group)
            return;
    }
    for (size_t i = 0; i < count; i++) {
        if (getpgid(all[i]) == group)
            kill(all[i], signal);
    }
}

enum progress { PLANNED, RUNNING, EXITED, FAILED };

struct worker_end {
    enum progress progress; /* of the worker */
    pid_t pid;              /* also its process group; 0: it has not started */
    struct loop_timer *timer;
    int signal;          /* the one that was asked for */
    int64_t grace_ms;    /* that came with it */
    int64_t deadline_ms; /* for KILL */
    int64_t left_ms;     /* until it, while paused */
    bool paused, over;
};

static void send_signal(const struct worker_end *end, int signal)
{
    if (end->progress == RUNNING)
        worker_group_signal(end->pid, signal);
    else if (end->progress == EXITED)
        signal_rest(end->pid, signal);
}

static void grace_over(void *context)
{
    struct worker_end *end = context;
    send_signal(end, SIGKILL);
    end->over = true;
}

static void set_deadline(struct worker_end *end, int64_t after_ms)
{
    end->deadline_ms = clock_mono_ms() + after_ms;
    end->left_ms = after_ms;
    if (!end->paused)
        loop_timer_set(end->timer, after_ms);
}

struct worker_end *worker_end_create(struct loop *loop, bool paused)
{
    struct worker_end *end = mem_alloc(sizeof(*end));
    *end = (struct worker_end){.progress = PLANNED, .paused = paused, .over = true};
    end->timer = loop_timer_create(loop, grace_over, end);
    return end;
}

void worker_end_destroy(struct worker_end *end)
{
    if (end == NULL)
        return;
    loop_timer_destroy(end->timer);
    free(end);
}

static void act(struct worker_end *end)
{
    loop_timer_clear(end->timer);
    if (end->signal == SIGKILL || end->grace_ms <= 0) {
        grace_over(end);
        return;
    }
    send_signal(end, end->signal);
    if (!end->paused) /* one that is stopped could not obey */
        send_signal(end, SIGCONT);
    set_deadline(end, end->grace_ms);
}

void worker_end_begin(struct worker_end *end, int signal, int64_t grace_ms)
{
    end->signal = signal;
    end->grace_ms = grace_ms;
    end->over = end->progress == FAILED;
    if (end->progress == RUNNING || end->progress == EXITED)
        act(end);
}

void worker_end_started(struct worker_end *end, pid_t pid)
{
    if (end == NULL)
        return;
    end->progress = RUNNING;
    end->pid = pid;
    if (!end->over)
        act(end);
}

void worker_end_exited(struct worker_end *end)
{
    if (end == NULL)
        return;
    end->progress = EXITED;
    if (end->over || kill(-end->pid, 0) == 0)
        return;
    loop_timer_clear(end->timer);
    end->over = true;
}

void worker_end_failed(struct worker_end *end)
{
    if (end == NULL)
        return;
    end->progress = FAILED;
    end->over = true;
}

void worker_end_pause(struct worker_end *end, bool paused)
{
    if (end == NULL || end->paused == paused)
        return;
    end->paused = paused;
    if (end->over || end->progress == PLANNED)
        return;
    if (paused) {
        end->left_ms = end->deadline_ms - clock_mono_ms();
        loop_timer_clear(end->timer);
    } else {
        set_deadline(end, end->left_ms > 0 ? end->left_ms : 0);
    }
}

bool worker_end_is_over(const struct worker_end *end)
{
    return end == NULL || end->over;
}
