/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ending.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/room_test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "io/proc.h"
#include "io/reaper.h"
#include "node/descendants.h"

#define STRAY_GRACE_MS 1000
#define KILL_AGAIN_MS 20
#define KILL_PATIENCE_MS 10000
#define KILL_ROUNDS 100 /* at least: we may have been stopped ourselves for longer than that */
#define SHOWN_MAX 3
#define WORD_MAX 64
#define HELD_MAX 1024
#define STATUS_MAX 8192

/* Time that processes get to end. It does not pass while the job is suspended. */
struct grace {
    struct loop_timer *timer;
    int64_t deadline_ms;
    int64_t left_ms; /* until it, while paused */
    bool paused;
};

static void grace_set(struct grace *grace, int64_t after_ms)
{
    grace->deadline_ms = clock_mono_ms() + after_ms;
    grace->left_ms = after_ms;
    if (!grace->paused)
        loop_timer_set(grace->timer, after_ms);
}

/* `runs`: there is a deadline. */
static void grace_pause(struct grace *grace, bool paused, bool runs)
{
    if (grace->paused == paused)
        return;
    grace->paused = paused;
    if (runs && paused) {
        grace->left_ms = grace->deadline_ms - clock_mono_ms();
        loop_timer_clear(grace->timer);
    } else if (runs) {
        grace_set(grace, grace->left_ms > 0 ? grace->left_ms : 0);
    }
}

enum ending_state { ENDING_IDLE, ENDING_ASKED, ENDING_KILLING, ENDING_GONE };

struct ending {
    const struct helpers *helpers;
    const struct ending_ops *ops;
    void *context;
    enum ending_state state;
    struct grace grace;  /* its deadline is that of the present state */
    int kill_rounds;     /* so often has SIGKILL been sent */
    uint64_t kill_ticks; /* when it was first sent, as in proc_stat; 0: it was not */
};

static bool is_helper(const void *context, pid_t pid)
{
    return helpers_has(context, pid);
}

static size_t list_strays(const struct ending *ending, pid_t **out)
{
    const struct descendants_spared spared = {is_helper, ending->helpers};
    return descendants_list_except(getpid(), &spared, out);
}

/* The list costs more than the question to the kernel, which is enough in most jobs. */
static bool has_strays(const struct ending *ending)
{
    pid_t *all AUTO_FREE = NULL;
    if (!reaper_has_children() || helpers_count(ending->helpers) == 0)
        return reaper_has_children();
    return list_strays(ending, &all) > 0;
}

/* To every process below us that is not in a live worker's group (which gets it as a group). */
static void signal_strays(struct ending *ending, int signal)
{
    pid_t *all AUTO_FREE = NULL;
    size_t count = list_strays(ending, &all);
    for (size_t i = 0; i < count; i++) {
        if (signal == SIGKILL || !ending->ops->is_worker_group(ending->context, getpgid(all[i])))
            kill(all[i], signal);
    }
}

static void gone(struct ending *ending, const char *held)
{
    ending->state = ENDING_GONE;
    loop_timer_clear(ending->grace.timer);
    ending->ops->gone(ending->context, held);
}

/* A word of a file in /proc, without its newline; "": there is none. */
static void read_word(pid_t pid, const char *file, char word[WORD_MAX])
{
    struct buf text AUTO_BUF = BUF_INIT(WORD_MAX);
    proc_read(pid, 0, file, &text);
    snprintf(word, WORD_MAX, "%.*s", (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
    plain_line(word, '?');
}

static void describe_one(pid_t pid, struct buf *out)
{
    char name[WORD_MAX], place[WORD_MAX];
    read_word(pid, "comm", name);
    read_word(pid, "wchan", place); /* "0": running, or we may not know */
    buf_printf(out, "%spid %d (%s", out->length > 0 ? ", " : "", (int)pid,
               name[0] == '\0' ? "its name is not known" : name);
    if (place[0] != '\0' && strcmp(place, "0") != 0)
        buf_printf(out, ", in %s of the kernel", place);
    buf_puts(out, ")");
}

static uint64_t now_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)now.tv_sec * second + (uint64_t)now.tv_nsec * second / 1000000000;
}

/* It has had SIGKILL for as long as the others, and runs or sleeps in the kernel on its way out:
 * the signal stays where it is until the end. */
static bool is_dying(const struct ending *ending, pid_t pid, const struct proc_stat *stat)
{
    struct buf text AUTO_BUF = BUF_INIT(STATUS_MAX);
    uint64_t pending;
    return stat->state != 'Z' && stat->state != 'X' && stat->start_ticks < ending->kill_ticks &&
           proc_read(pid, 0, "status", &text) &&
           proc_pending_read(buf_text(&text), &pending) == 0 && (pending >> (SIGKILL - 1) & 1) != 0;
}

/* The kernel holds it. Others have begun a moment ago, or have ended and their parent does not wait
 * for them, or belong to another user: no signal of ours reached those. */
static bool is_held(const struct ending *ending, pid_t pid)
{
    struct proc_stat stat;
    return kill(pid, 0) == 0 && (proc_read_stat(pid, 0, &stat) < 0 || stat.state == 'D' ||
                                 is_dying(ending, pid, &stat) || held_child_status(pid) >= 0);
}

void ending_describe_held(const struct ending *ending, struct buf *out)
{
    pid_t *all AUTO_FREE = NULL;
    size_t count = list_strays(ending, &all), held = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_held(ending, all[i]) && held++ < SHOWN_MAX)
            describe_one(all[i], out);
    }
    if (held > SHOWN_MAX)
        buf_printf(out, " and %zu more", held - SHOWN_MAX);
}

void ending_check(struct ending *ending)
{
    if (ending->state != ENDING_ASKED && ending->state != ENDING_KILLING)
        return;
    if (!has_strays(ending)) {
        gone(ending, NULL);
        return;
    }
    bool only_strays = ending->state == ENDING_ASKED && ending->ops->live(ending->context) == 0;
    if (only_strays && ending->grace.deadline_ms > clock_mono_ms() + STRAY_GRACE_MS)
        grace_set(&ending->grace, STRAY_GRACE_MS);
}

static void kill_all(struct ending *ending)
{
    if (ending->state != ENDING_KILLING) {
        ending->state = ENDING_KILLING;
        ending->grace.deadline_ms = clock_mono_ms() + KILL_PATIENCE_MS;
        ending->kill_ticks = now_ticks();
        ending->kill_rounds = 0;
    }
    ending->ops->signal(ending->context, SIGKILL);
    signal_strays(ending, SIGKILL);
    if (++ending->kill_rounds < KILL_ROUNDS || clock_mono_ms() <= ending->grace.deadline_ms) {
        loop_timer_set(ending->grace.timer, KILL_AGAIN_MS);
        return;
    }
    struct buf held AUTO_BUF = BUF_INIT(HELD_MAX);
    ending->ops->collect(ending->context); /* we may have been stopped ourselves */
    ending_describe_held(ending, &held);
    gone(ending, held.length > 0 ? buf_text(&held) : NULL);
}

static void timer_fired(void *context)
{
    kill_all(context);
}

struct ending *ending_create(struct loop *loop, const struct helpers *helpers,
                             const struct ending_ops *ops, void *context)
{
    struct ending *ending =
        MEM_NEW((struct ending){.helpers = helpers, .ops = ops, .context = context});
    ending->grace.timer = loop_timer_create(loop, timer_fired, ending);
    return ending;
}

void ending_destroy(struct ending *ending)
{
    if (ending == NULL)
        return;
    loop_timer_destroy(ending->grace.timer);
    free(ending);
}

void ending_begin(struct ending *ending, int signal, int64_t grace_ms)
{
    if (ending->state == ENDING_KILLING || ending->state == ENDING_GONE)
        return;
    ending->state = ENDING_ASKED;
    if (!has_strays(ending)) { /* as at the end of most jobs */
        gone(ending, NULL);
        return;
    }
    if (signal == SIGKILL || grace_ms == 0) {
        kill_all(ending);
    } else {
        ending->ops->signal(ending->context, signal);
        signal_strays(ending, signal);
        if (!ending->grace.paused) { /* one that is stopped could not obey */
            ending->ops->signal(ending->context, SIGCONT);
            signal_strays(ending, SIGCONT);
        }
        grace_set(&ending->grace, grace_ms);
    }
    ending_check(ending);
}

void ending_pause(struct ending *ending, bool paused)
{
    grace_pause(&ending->grace, paused, ending->state == ENDING_ASKED);
}

void ending_reset(struct ending *ending)
{
    if (ending->state == ENDING_GONE)
        ending->state = ENDING_IDLE;
}

bool ending_is_idle(const struct ending *ending)
{
    return ending->state == ENDING_IDLE;
}

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
    struct grace grace;     /* until KILL */
    int signal;             /* the one that was asked for */
    int64_t grace_ms;       /* that came with it */
    bool over;
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

struct worker_end *worker_end_create(struct loop *loop, bool paused)
{
    struct worker_end *end =
        MEM_NEW((struct worker_end){.progress = PLANNED, .grace.paused = paused, .over = true});
    end->grace.timer = loop_timer_create(loop, grace_over, end);
    return end;
}

void worker_end_destroy(struct worker_end *end)
{
    if (end == NULL)
        return;
    loop_timer_destroy(end->grace.timer);
    free(end);
}

static void act(struct worker_end *end)
{
    loop_timer_clear(end->grace.timer);
    if (end->signal == SIGKILL || end->grace_ms <= 0) {
        grace_over(end);
        return;
    }
    send_signal(end, end->signal);
    if (!end->grace.paused) /* one that is stopped could not obey */
        send_signal(end, SIGCONT);
    grace_set(&end->grace, end->grace_ms);
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
    loop_timer_clear(end->grace.timer);
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
    if (end != NULL)
        grace_pause(&end->grace, paused, !end->over && end->progress != PLANNED);
}

bool worker_end_is_over(const struct worker_end *end)
{
    return end == NULL || end->over;
}
