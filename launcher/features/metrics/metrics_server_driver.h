/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the address of --metrics serves over HTTP. Nobody can change anything there.
 *
 *   /metrics       the metrics of the job, for everyone who reaches the address
 *   /              the status page, for those that the gate lets in, as the next ones are
 *   /job.json      what the page shows of the job, and
 *   /output.json   of the output; ?rank=N for that of one rank (page_json.h)
 *   /end.json      answered at the end of the job, or with {} after some seconds
 *   /history.json  what the job used in the last hour; ?since=N: from this point on
 *                  (usage/job_history.h)
 *
 * A request for what ranks and hosts use asks the agents, and is answered when they have answered,
 * or when their time is over. Without requests the server does nothing.
 */
#pragma once

#include "driver/job/job.h"
#include "io/http_server.h"
#include "io/listener.h"

#define METRICS_PATH "/metrics"
#define METRICS_SERVER_WAITS_MAX 16 /* pages that wait for the end; more are refused */

struct metrics_server;

/* NULL: the address cannot be used. */
struct metrics_server *metrics_server_create(struct job *job, const struct listen_address *address,
                                             struct error *err);
void metrics_server_destroy(struct metrics_server *server); /* accepts NULL */

/* The job has its verdict, and the loop runs no more: every client that waits gets an answer. */
void metrics_server_finish(struct metrics_server *server);

const char *metrics_server_url(const struct metrics_server *server); /* with its path */
/* The address of the status page, with its token. */
const char *metrics_server_page(const struct metrics_server *server);
