/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All processes below one: for the agent that leaves nothing behind.
 *
 * A list is a snapshot: processes may appear and end meanwhile, so whoever kills repeats until it
 * is empty. Zombies are listed too (somebody has to reap them).
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define DESCENDANTS_MAX 65536

/* Parents before their children. `*out` is freed with free() and NULL when there are none. Costs
 * one small read when the kernel lists children (CONFIG_PROC_CHILDREN), a walk through /proc when
 * not. Where there is no /proc only the children of this process itself are found, and nothing
 * below another one: orphans become children of a subreaper when what is above them has ended. */
size_t descendants_list(pid_t pid, pid_t **out);

/* The walk through /proc, whatever the kernel offers. */
size_t descendants_scan(pid_t pid, pid_t **out);
