/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a library. The signal handlers of the program run in the program's own threads. */
#pragma once

#include <pthread.h>

/* Starts a thread that blocks all signals. The kernel shows the first 15 bytes of `name`. Returns 0
 * or an errno. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);
/* The same for one that needs little stack, 256 KiB, however much the user's limit gives others. */
int thread_start_small(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);
