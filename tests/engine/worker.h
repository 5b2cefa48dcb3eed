/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs in tests/engine share: the engine that HVD_ENGINE names, opened from the
 * modules in HVD_MODULES, and a failure that ends the program with one line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/messages.h"

struct worker {
    const struct engine *engine;
    struct engine_world *world;
    struct engine_place place;
};

void worker_open(struct worker *worker);
void worker_close(struct worker *worker);

/* A communicator of all ranks, and as a set. */
struct engine_comm *worker_comm(const struct worker *worker, uint64_t id);
struct message_set worker_set(const struct worker *worker, struct engine_comm *comm);

/* Waits for all ranks. */
enum hvd_status worker_barrier(const struct worker *worker, struct engine_comm *comm,
                               struct error *err);

__attribute__((noreturn, format(printf, 1, 2))) void worker_fail(const char *format, ...);

/* Ends the program unless the status is HVD_OK. */
void worker_check(enum hvd_status status, const struct error *err, const char *what);
