/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"

struct deferred {
    void (*call)(void *context);
    void *context;
};

struct loop {
    struct event_base *base;
    struct event *defer_event;
    struct deferred *deferred; /* FIFO of this turn */
    size_t deferred_count, deferred_room;
    LIST_HEAD(, loop_timer) timers; /* all that exist */
};

/* One callback may destroy another object whose event is already active in this turn. libevent's
 * event_del() takes an active event off the queue, so nothing is called after destroy. */
struct loop_fd {
    struct event *event;
    struct loop *loop;
    int fd, what;
    void (*ready)(void *context, int what);
    void *context;
};

struct loop_timer {
    struct loop *loop;
    LIST_ENTRY(loop_timer) all;
    struct event *event;
    int64_t due_ms; /* of the latest loop_timer_set() */
    void (*fire)(void *context);
    void *context;
};

struct loop_signals {
    struct loop_fd *watch;
    int fd;
    void (*got)(void *context, int signal, int sender_pid);
    void *context;
};

static void run_deferred(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct loop *loop = arg;
    /* Calls that are deferred from here on belong to the next turn. */
    struct deferred *calls = loop->deferred;
    size_t count = loop->deferred_count;
    loop->deferred = NULL;
    loop->deferred_count = loop->deferred_room = 0;
    for (size_t i = 0; i < count; i++)
        calls[i].call(calls[i].context);
    free(calls);
}

/* What libevent wants to say on stderr (such as EPERM for a file that cannot be watched, which the
 * caller sees from loop_fd_watch) is nothing for the user, but for its last words. */
static void keep_quiet(int severity, const char *text)
{
    if (severity == EVENT_LOG_ERR)
        fprintf(stderr, "hvdrun: the event loop failed: %s\n", text);
}

/* Where it sees no way on it ends the process, with a status that would be taken for the job's. */
static void cannot_go_on(int status)
{
    (void)status;
    _exit(STATUS_LAUNCHER);
}

struct loop *loop_create(struct error *err)
{
    /* A timer that could not be set would be a deadline that never comes. */
    event_set_mem_functions(mem_alloc, mem_resize, free);
    event_set_log_callback(keep_quiet);
    event_set_fatal_callback(cannot_go_on);
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    if (config != NULL) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
                                          EVENT_BASE_FLAG_PRECISE_TIMER);
        base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (base == NULL) {
        error_errno(err, errno, "cannot create an event loop");
        return NULL;
    }
    struct loop *loop = mem_alloc(sizeof(*loop));
    loop->base = base;
    loop->defer_event = event_new(base, -1, 0, run_deferred, loop);
    return loop;
}

void loop_destroy(struct loop *loop)
{
    if (loop == NULL)
        return;
    event_free(loop->defer_event);
    event_base_free(loop->base);
    free(loop->deferred);
    free(loop);
}

struct event_base *loop_base(const struct loop *loop)
{
    return loop->base;
}

void loop_run(struct loop *loop)
{
    event_base_dispatch(loop->base);
}

void loop_stop(struct loop *loop)
{
    event_base_loopbreak(loop->base);
}

int64_t loop_now_ms(struct loop *loop)
{
    (void)loop; /* libevent's cached time is wall time; the vDSO's monotonic clock is as cheap */
    return clock_mono_ms();
}

void loop_defer(struct loop *loop, void (*call)(void *context), void *context)
{
    MEM_ADD_ROOM(loop->deferred, loop->deferred_count, loop->deferred_room) =
        (struct deferred){call, context};
    event_active(loop->defer_event, EV_TIMEOUT, 1);
}

static void fd_ready(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct loop_fd *watch = arg;
    int ready = ((what & EV_READ) != 0 ? LOOP_READ : 0) | ((what & EV_WRITE) != 0 ? LOOP_WRITE : 0);
    watch->ready(watch->context, ready & watch->what);
}

struct loop_fd *loop_fd_create(struct loop *loop, int fd, void (*ready)(void *context, int what),
                               void *context)
{
    struct loop_fd *watch =
        MEM_NEW((struct loop_fd){.loop = loop, .fd = fd, .ready = ready, .context = context});
    watch->event = event_new(loop->base, fd, EV_PERSIST, fd_ready, watch);
    return watch;
}

int loop_fd_watch(struct loop_fd *watch, int what)
{
    if (what == watch->what)
        return 0;
    event_del(watch->event);
    watch->what = 0;
    if (what == 0)
        return 0;
    short events = (short)(((what & LOOP_READ) != 0 ? EV_READ : 0) |
                           ((what & LOOP_WRITE) != 0 ? EV_WRITE : 0) | EV_PERSIST);
    event_assign(watch->event, watch->loop->base, watch->fd, events, fd_ready, watch);
    if (event_add(watch->event, NULL) < 0) {
        /* What can be watched has to be: else we would wait for it for ever. */
        if (errno == ENOMEM || errno == ENOSPC)
            mem_exhausted();
        return -1;
    }
    watch->what = what;
    return 0;
}

void loop_fd_destroy(struct loop_fd *watch)
{
    if (watch == NULL)
        return;
    int saved = errno;
    event_free(watch->event);
    free(watch);
    errno = saved;
}

static void timer_fire(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct loop_timer *timer = arg;
    timer->fire(timer->context);
}

struct loop_timer *loop_timer_create(struct loop *loop, void (*fire)(void *context), void *context)
{
    struct loop_timer *timer =
        MEM_NEW((struct loop_timer){.loop = loop, .fire = fire, .context = context});
    timer->event = event_new(loop->base, -1, 0, timer_fire, timer);
    LIST_INSERT_HEAD(&loop->timers, timer, all);
    return timer;
}

void loop_timer_set(struct loop_timer *timer, int64_t after_ms)
{
    if (after_ms < 0)
        after_ms = 0;
    struct timeval after = {.tv_sec = after_ms / 1000, .tv_usec = after_ms % 1000 * 1000};
    timer->due_ms = clock_mono_ms() + after_ms;
    event_add(timer->event, &after);
}

void loop_timer_clear(struct loop_timer *timer)
{
    event_del(timer->event);
}

bool loop_timer_is_set(const struct loop_timer *timer)
{
    return event_pending(timer->event, EV_TIMEOUT, NULL) != 0;
}

void loop_timer_destroy(struct loop_timer *timer)
{
    if (timer == NULL)
        return;
    LIST_REMOVE(timer, all);
    event_free(timer->event);
    free(timer);
}

void loop_stood_still(struct loop *loop, int64_t since_ms)
{
    struct loop_timer *timer;
    LIST_FOREACH (timer, &loop->timers, all) {
        if (loop_timer_is_set(timer))
            loop_timer_set(timer, timer->due_ms - since_ms);
    }
}

static void signals_ready(void *context, int what)
{
    (void)what;
    struct loop_signals *signals = context;
    struct signalfd_siginfo info;
    /* One per turn: the handler may destroy us, and level-triggering brings us back. */
    if (fd_read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        signals->got(signals->context, (int)info.ssi_signo, (int)info.ssi_pid);
}

struct loop_signals *loop_signals_create(struct loop *loop, const int *signals,
                                         void (*got)(void *context, int signal, int sender_pid),
                                         void *context, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    for (const int *signal = signals; *signal != 0; signal++)
        sigaddset(&set, *signal);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        error_errno(err, errno, "cannot create a signal descriptor");
        return NULL;
    }
    struct loop_signals *result =
        MEM_NEW((struct loop_signals){.fd = fd, .got = got, .context = context});
    result->watch = loop_fd_create(loop, fd, signals_ready, result);
    loop_fd_watch(result->watch, LOOP_READ);
    return result;
}

void loop_signals_destroy(struct loop_signals *signals)
{
    if (signals == NULL)
        return;
    loop_fd_destroy(signals->watch);
    fd_close(&signals->fd);
    free(signals);
}
