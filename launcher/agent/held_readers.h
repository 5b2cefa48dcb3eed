/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of stacks that the kernel holds, over all looks of an agent. It holds a reader that
 * needs a page from a file system that does not answer, or from swap space that is gone. Not even
 * SIGKILL ends that.
 *
 * So no second reader follows a held one to the same process, and there is a limit for all of
 * them. The agent and the readers share this; the last one frees it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HELD_READERS_MAX 64

struct held_readers;

struct held_readers *held_readers_create(void);
struct held_readers *held_readers_share(struct held_readers *readers); /* returns it */
void held_readers_leave(struct held_readers *readers);                 /* accepts NULL */

/* A reader begins with a process, and will be held if it is not done at `late_ns`, of
 * clock_mono_ns(). Its place; -1: it must not, because another reader is held there, or too many
 * are. */
int held_readers_begin(struct held_readers *readers, pid_t pid, int64_t late_ns);
void held_readers_done(struct held_readers *readers, int place);
