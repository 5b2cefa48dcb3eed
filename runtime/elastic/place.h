/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker of an elastic job learns from the launcher: its place in the next epoch, changed
 * hosts, and the deadline of its host.
 *
 * It asks for its place by Horovod's protocol
 * (docs/internals/rendezvous.md#horovods-elastic-protocol). The launcher's store answers when the
 * launcher has planned the epoch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/setup.h"
#include "line/line.h"

/* The identity of this worker, from the environment, and where the store is. Texts are borrowed. */
struct elastic_self {
    const char *address; /* NULL: the launcher is not elastic */
    int port;
    const char *host;
    int local_rank;
    int64_t timeout_ms; /* longer than the launcher waits for hosts */
};

/* -1: a variable is wrong. Reads HOROVOD_ELASTIC, HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT,
 * HOROVOD_HOSTNAME, HOROVOD_LOCAL_RANK and HOROVOD_ELASTIC_TIMEOUT (600 s if it is not set). */
int elastic_self_read(struct elastic_self *self, setup_get *get, struct error *err);

/* Waits for the launcher's answer. The local rank may be another one then: `self` follows. */
enum hvd_status elastic_place_ask(struct elastic_self *self, struct engine_place *place,
                                  struct error *err);

/* Says to the launcher that this worker can rejoin, and hears of changed hosts over its line. */
enum hvd_status elastic_register(const struct elastic_self *self, struct error *err);

/* Sets the variables that setup_read() reads, as Horovod does. Only while no other thread reads the
 * environment. */
void elastic_place_export(const struct engine_place *place);

/* Whether the launcher has said since the last call that hosts have changed, over a line for that
 * (line/line.h). It has no thread: what has come waits in the socket. Closes a line that has ended,
 * and accepts NULL: the program is not notified then. */
bool elastic_notices_take(struct line **line);

/*
 * How much time a worker has before its host goes away. The launcher writes it to the file that
 * HVDRUN_DEADLINE_FILE names (docs/elastic.md): "SECONDS-SINCE-1970 REASON". Without a deadline
 * there is no file.
 */
#define DEADLINE_VARIABLE "HVDRUN_DEADLINE_FILE"
#define DEADLINE_REASON_MAX 1024

/* Reads the file at `path`. -1: there is no deadline. -2: the file cannot be read. */
int64_t deadline_read(const char *path, char reason[DEADLINE_REASON_MAX], struct error *err);
