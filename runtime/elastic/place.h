/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's place in the next epoch of an elastic job, by Horovod's protocol
 * (docs/internals/rendezvous.md#horovods-elastic-protocol). The worker asks the launcher's store,
 * which answers when it has planned the epoch.
 */
#pragma once

#include "engine/engine.h"

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
int elastic_self_read(struct elastic_self *self, char *(*get)(const char *name), struct error *err);

/* Pure: "rank,size,local_rank,local_size,cross_rank,cross_size". HVD_ERR_REMOVED: rank -1.
 * HVD_ERR_ENGINE: the text has another form. */
enum hvd_status elastic_place_parse(const char *text, struct engine_place *place,
                                    struct error *err);

/* Waits for the launcher's answer. The local rank may be another one then: `self` follows. */
enum hvd_status elastic_place_ask(struct elastic_self *self, struct engine_place *place,
                                  struct error *err);

/* Says to the launcher that this worker can rejoin, and hears of changed hosts over its line. */
enum hvd_status elastic_register(const struct elastic_self *self, struct error *err);

/* Sets the variables that setup_read() reads, as Horovod does. Only while no other thread reads the
 * environment. */
void elastic_place_export(const struct engine_place *place);
