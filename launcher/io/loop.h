/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: one per process, single-threaded, over libevent (only this room uses it).
 *
 * Watches, timers and deferred calls belong to their owner, who destroys them. Destroying one from
 * inside its own or another callback is safe, and none of its callbacks runs after that. A loop
 * inherited through fork must never be touched, not even freed: freeing it would remove the
 * parent's epoll registrations. The child makes a new one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct loop;
struct loop_fd;
struct loop_timer;
struct loop_signals;

struct loop *loop_create(struct error *err);
void loop_destroy(struct loop *loop);
void loop_run(struct loop *loop);  /* until loop_stop() or until nothing is left to wait for */
void loop_stop(struct loop *loop); /* loop_run returns after the current callback */

/* Monotonic milliseconds, taken once per loop turn; cheap. */
int64_t loop_now_ms(struct loop *loop);

/* Calls `call(context)` once, after the callbacks of this turn. */
void loop_defer(struct loop *loop, void (*call)(void *context), void *context);

/* A descriptor that poll(2) can watch. Created disarmed. The descriptor stays the owner's, who
 * destroys the watch BEFORE closing it. Level-triggered. */
enum { LOOP_READ = 1, LOOP_WRITE = 2 };
struct loop_fd *loop_fd_create(struct loop *loop, int fd, void (*ready)(void *context, int what),
                               void *context);
int loop_fd_watch(struct loop_fd *watch, int what); /* 0 disarms; -1: the kernel refuses (EPERM) */
void loop_fd_destroy(struct loop_fd *watch);

/* A one-shot timer; setting it again moves it. */
struct loop_timer *loop_timer_create(struct loop *loop, void (*fire)(void *context), void *context);
void loop_timer_set(struct loop_timer *timer, int64_t after_ms);
void loop_timer_clear(struct loop_timer *timer);
bool loop_timer_is_set(const struct loop_timer *timer);

/* The process was stopped from `since_ms` (clock_mono_ms) until now: every timer that is set fires
 * so much later. */
void loop_stood_still(struct loop *loop, int64_t since_ms);
void loop_timer_destroy(struct loop_timer *timer);

/* Signals as events: blocks the listed signals (0-ended) in this thread and hands them out. Threads
 * started later inherit the blocked mask; children must get the old mask back (io/child does that).
 */
struct loop_signals *loop_signals_create(struct loop *loop, const int *signals,
                                         void (*got)(void *context, int signal, int sender_pid),
                                         void *context, struct error *err);
void loop_signals_destroy(struct loop_signals *signals); /* leaves them blocked */

/* libevent's part of the loop, for other files of this room that use libevent. */
struct event_base *loop_base(const struct loop *loop);
