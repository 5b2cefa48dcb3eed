/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper programs that a process owns (ssh, a proxy command, `ssh -G`, kubectl, nvidia-smi).
 * Each has a session of its own, so Ctrl-C reaches only us. They are known by pid, so that a sweep
 * for what dead agents left behind spares them and all processes below them. The owner of the
 * reaper hands their exits in.
 */
#pragma once

#include "io/child.h"
#include "io/reaper.h"

struct helpers;

struct helpers *helpers_create(void);
void helpers_destroy(struct helpers *helpers); /* kills those that still run; accepts NULL */

/* Starts `spec` with the rest of the user's environment when spec->envp is NULL. `exited` (may be
 * NULL) comes once, from helpers_exited(), unless the helper was let go before. */
pid_t helpers_start(struct helpers *helpers, const struct child_spec *spec,
                    void (*exited)(void *context, int wait_status), void *context,
                    struct error *err);

/* As helpers_start(), but the program survives when we are killed. It is for a program that others
 * depend on, and that ends on its own when they have ended. */
pid_t helpers_start_lasting(struct helpers *helpers, const struct child_spec *spec,
                            void (*exited)(void *context, int wait_status), void *context,
                            struct error *err);

/* One more helper, started elsewhere. It leads a process group, or is about to. */
void helpers_adopt(struct helpers *helpers, pid_t pid);

/* It goes on, and is not a helper any more. */
void helpers_forget(struct helpers *helpers, pid_t pid);

/* Ends it without a callback: TERM now, KILL if it is still there after a second (checked when
 * other exits come, and at the end). */
void helpers_let_go(struct helpers *helpers, pid_t pid);

/* KILL to those that were let go a second ago or more. */
void helpers_kill_overdue(struct helpers *helpers);

void helpers_exited(struct helpers *helpers, const struct reaper_exit *exit);
/* Started here and not yet reaped. */
bool helpers_has(const struct helpers *helpers, pid_t pid);
size_t helpers_count(const struct helpers *helpers);
