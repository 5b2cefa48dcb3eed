/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All processes below one, for the agent that leaves no process behind.
 *
 * A list is a snapshot: processes appear and end meanwhile. To kill all of them, repeat until the
 * list is empty. Zombies are listed too, since they must be reaped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DESCENDANTS_MAX 65536

/* Parents before their children. `*out` is freed with free() and NULL when there are none. Costs
 * one small read for each thread when the kernel lists children (CONFIG_PROC_CHILDREN), a walk
 * through /proc when not. Without /proc it finds only the children of this process, and nothing
 * below another process. That is enough for a subreaper: orphans become its children when their
 * parent ends. */
size_t descendants_list(pid_t pid, pid_t **out);

/* The same without the processes that `has` names, and without all that is below these: nothing is
 * read of them. */
struct descendants_spared {
    bool (*has)(const void *context, pid_t pid);
    const void *context;
};
size_t descendants_list_except(pid_t pid, const struct descendants_spared *spared, pid_t **out);

/* The walk through /proc, whatever the kernel offers. */
size_t descendants_scan(pid_t pid, const struct descendants_spared *spared, pid_t **out);

/* One reading for many questions about what is below this process. It asks up to `threads` threads
 * for their children. Where these are more, it walks through /proc: a thread costs nothing then,
 * and every process of the machine some time and 8 bytes. */
struct descendants_table;
struct descendants_table *descendants_table_read(size_t threads);
void descendants_table_destroy(struct descendants_table *table);
size_t descendants_in(const struct descendants_table *table, pid_t pid, pid_t **out);

/*
 * A child that has ended, all but: its first thread is gone, and the kernel holds another one,
 * which not even SIGKILL ends. That is a helper process that reads stacks, and waits for a file
 * system that does not answer (features/stacks/stack_helper_agent.h). waitpid() does not return for
 * it.
 */
/* Since when nothing is left below us but such children. */
struct held_children {
    int64_t since_ms; /* 0: that is not so */
};

/* It has been so for longer than a process takes to end on a busy machine. */
bool held_children_only(struct held_children *children);

/* The wait status that such a child will have; -1: it is none. */
int held_child_status(pid_t pid);

/* A thread of it, other than its first one, waits now, and does not use the processor. */
bool held_child_waits(pid_t pid);
