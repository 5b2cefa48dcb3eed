/* SPDX-License-Identifier: Apache-2.0 */
/* Does a thread wait for a file of a file system that can hang: of a server, or of a program? Only
 * files of the kernel are read, so this does not wait for that file system. */
#pragma once

#include <sys/types.h>

/* The kernel's name of the file system, "nfs4", of the file that the thread reads or writes now;
 * the caller frees it. NULL: it does not, the kernel does not say, or the file is on a disk of this
 * machine. `root` is put in front of /proc: "" except in tests. */
char *file_wait_system(const char *root, pid_t tid);
