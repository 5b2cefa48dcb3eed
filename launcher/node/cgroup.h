/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the cgroup of this process or of another one, version 2 or 1 (or both at once, as on
 * mixed systems).
 *
 * It looks only at the usual places (/sys/fs/cgroup and below); what is missing there is "not
 * known".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* CPUs that the quota of this cgroup or one above it allows, rounded up; 0: no quota. */
int cgroup_cpu_quota(void);

/* A counter out of a file of the memory controller: the number after `key` at the start of a line
 * (NULL: the first number). From `v2_file` of the unified tree or `v1_file` of the memory tree,
 * whichever exists; -1: neither. */
int64_t cgroup_memory_counter(const char *v2_file, const char *v1_file, const char *key);

/* Its cgroup, or one above it, is frozen. */
bool cgroup_is_frozen(pid_t pid);

/* For tests: the path of `controller` ("" for the unified tree) in the text of /proc/self/cgroup;
 * NULL: not listed. The caller owns it. */
char *cgroup_path_in(const char *text, const char *controller);

/*
 * Did the out-of-memory killer end a process? It may have, if the process ended by a SIGKILL that
 * we did not send; the exit status does not say.
 *
 * Evidence, best first: the kernel's log names the pid; the counter of our own cgroup rose since
 * the job began; the counter of the whole machine rose (some process was killed, perhaps not ours).
 */
enum oom_verdict { OOM_NO, OOM_POSSIBLE, OOM_LIKELY, OOM_CERTAIN };

struct oom_watch;
struct oom_watch *oom_watch_create(void); /* remembers the counters as they are now */
void oom_watch_destroy(struct oom_watch *watch);

/* About a process that ended by SIGKILL since the watch was created. Never blocks. */
enum oom_verdict oom_watch_verdict(struct oom_watch *watch, pid_t pid);
