/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native frames of all threads of a process: those of C, C++ and other compiled code. See
 * tasks.h for which threads are stopped, and for how long.
 *
 * A thread may have Python frames as well. Then only the native frames above its innermost Python
 * frame remain: its calls of C code. The frames below are the interpreter's own, and the Python
 * frames stand for them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "stacks/module/unwind_module.h"
#include "stacks/process.h"
#include "stacks/stack.h"
#include "stacks/tasks.h"

/* hvdrun-unwind.so. NULL: it or libdw cannot be loaded. It stays open. */
const struct unwind_module *native_load(const char *path, struct error *err);

#define PROCESS_NATIVE_FRAMES_MAX 40 /* of one thread; the ones between the ends are left out */

/* Reads the native frames of a process whose Python threads are in `stacks`; none: it is not
 * Python. Adds the threads that run no Python, and a remark if frames are missing. As
 * process_stacks_read(), it can wait. */
void process_native_read(const struct unwind_module *module, const struct rights *rights, pid_t pid,
                         int64_t deadline_ns, struct process_stacks *stacks);
