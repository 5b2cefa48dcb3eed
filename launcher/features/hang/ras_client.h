/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question to NCCL's RAS. Each process of a job that uses NCCL listens at the address in
 * NCCL_RAS_ADDR, and the kernel chooses one of them for each connection. Any of them answers for
 * the whole job. A process that is stopped accepts a connection too, and never answers. So the
 * client connects again if nothing comes for RAS_FIRST_MS.
 */
#pragma once

#include <stddef.h>

#include "io/loop.h"

#define RAS_FIRST_MS 1000
#define RAS_TRIES 3
#define RAS_WHOLE_MS 8000
#define RAS_USUAL_ADDRESS "localhost:28028"

struct ras_client;

/* `address`: "localhost:PORT", or a numeric address instead of localhost, in brackets for IPv6.
 * NULL: it is none of these. `done` comes once, from the loop; `text` is borrowed for the call.
 * NULL: no answer. */
struct ras_client *ras_client_create(struct loop *loop, const char *address,
                                     void (*done)(void *context, const char *text, size_t length),
                                     void *context);
void ras_client_destroy(struct ras_client *client); /* accepts NULL */
