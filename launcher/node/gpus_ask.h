/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks `nvidia-smi -L` how many GPUs there are. This is the last resort, for a host that has a
 * driver although gpus.h finds no GPU. The sign of a driver is its control device, or that of WSL,
 * where no file lists GPUs. The program can be slow and, with a broken driver, hang. So the loop
 * goes on meanwhile, and at the time limit the program is killed and the answer is 0.
 */
#pragma once

#include <stdint.h>

#include "io/helpers.h"
#include "io/loop.h"

#define GPUS_ASK_LIMIT_MS 3000

struct gpus_ask;

/* The path of the program; NULL when there is no driver, or no such program. The caller frees it.
 * `root`: "" except in tests. `search`: a PATH value; WSL's folder is searched after it. */
char *gpus_ask_program(const char *root, const char *search);

/* `answered` comes once, from the loop; after that only gpus_ask_destroy() is allowed. A program
 * that cannot be started answers 0 too. */
struct gpus_ask *gpus_ask_create(struct loop *loop, struct helpers *helpers, const char *program,
                                 int64_t limit_ms, void (*answered)(void *context, int gpus),
                                 void *context);
void gpus_ask_destroy(struct gpus_ask *ask); /* kills what still runs; accepts NULL */
