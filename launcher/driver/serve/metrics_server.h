/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the metrics of a job over HTTP, at /metrics. Each request asks the agents, and is answered
 * when they have answered, or when their time is over. Without requests it does nothing.
 */
#pragma once

#include "driver/job/job.h"
#include "io/listen_address.h"

#define METRICS_PATH "/metrics"

struct metrics_server;

/* NULL: the address cannot be used. */
struct metrics_server *metrics_server_create(struct job *job, const struct listen_address *address,
                                             struct error *err);
void metrics_server_destroy(struct metrics_server *server); /* accepts NULL */

const char *metrics_server_url(const struct metrics_server *server); /* with its path */
