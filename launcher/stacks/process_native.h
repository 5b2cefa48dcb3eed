/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the native frames of a process to its Python frames. A thread may have both. Then only the
 * native frames above its innermost Python frame remain: its calls of C code. The frames below are
 * the interpreter's own, and the Python frames stand for them.
 */
#pragma once

#include "stacks/native.h"
#include "stacks/process.h"

#define PROCESS_NATIVE_FRAMES_MAX 40 /* of one thread; the ones between the ends are left out */

/* Reads the native frames of a process whose Python threads are in `stacks`; none: it is not
 * Python. Adds the threads that run no Python, and a remark if frames are missing. As
 * process_stacks_read(), it can wait. */
void process_native_read(const struct unwind_module *module, const struct rights *rights, pid_t pid,
                         int64_t deadline_ns, struct process_stacks *stacks);

/* For tests: the same with native frames that were read already. */
void process_native_add(const struct rights *rights, pid_t pid, const struct native_stacks *native,
                        struct process_stacks *stacks);
