/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did the out-of-memory killer end a process? It may have, if the process ended by a SIGKILL that
 * we did not send; the exit status does not say.
 *
 * Evidence, best first: the kernel's log names the pid; the counter of our own cgroup rose since
 * the job began; the counter of the whole machine rose (some process was killed, perhaps not ours).
 */
#pragma once

#include <sys/types.h>

enum oom_verdict { OOM_NO, OOM_POSSIBLE, OOM_LIKELY, OOM_CERTAIN };

struct oom_watch;

struct oom_watch *oom_watch_create(void); /* remembers the counters as they are now */
void oom_watch_destroy(struct oom_watch *watch);

/* About a process that ended by SIGKILL since the watch was created. Never blocks. */
enum oom_verdict oom_watch_verdict(struct oom_watch *watch, pid_t pid);

/* The pid that a record of the kernel's log says was killed for lack of memory; -1: none. */
pid_t oom_victim_in(const char *record);
