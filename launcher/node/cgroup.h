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
