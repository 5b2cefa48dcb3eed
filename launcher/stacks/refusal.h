/* SPDX-License-Identifier: Apache-2.0 */
/* Why the kernel does not let us read or stop a process. */
#pragma once

/* "its memory cannot be read: Permission denied (kernel.yama.ptrace_scope is 2)": names the setting
 * of the Yama security module if it can be the cause. The caller's. */
char *refusal(const char *what, int error);
