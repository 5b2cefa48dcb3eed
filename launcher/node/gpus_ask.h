/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking `nvidia-smi -L` how many GPUs there are: the last resort, where a driver is there (its
 * control device, or that of WSL, where no file lists GPUs) and gpus.h finds nothing. The program
 * may take long and, with a broken driver, hang; so the loop goes on meanwhile, and when the limit
 * is over it is killed and the answer is 0.
 */
#pragma once

#include <stdint.h>

#include "io/loop.h"
#include "io/reaper.h"

#define GPUS_ASK_LIMIT_MS 3000

struct gpus_ask;

/* The program to be asked; NULL when there is nothing to ask about, or no such program. The caller
 * owns it. `root`: "" but for tests; `search`: a PATH value, behind which WSL's folder is searched.
 */
char *gpus_ask_program(const char *root, const char *search);

/* `answered` comes once, from the loop, after which only destroying it is left. NULL and an error
 * when the program cannot be started. */
struct gpus_ask *gpus_ask_create(struct loop *loop, const char *program, int64_t limit_ms,
                                 void (*answered)(void *context, int gpus), void *context,
                                 struct error *err);
void gpus_ask_destroy(struct gpus_ask *ask); /* kills what still runs; accepts NULL */

/* From the owner's reaper; false: it was another child. Accepts NULL. */
bool gpus_ask_exited(struct gpus_ask *ask, const struct reaper_exit *exit);
