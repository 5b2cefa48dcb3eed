/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a running job over its control socket (driver/control/control.h). These functions block,
 * because the program that calls them does nothing else. `until_ms` is a time of clock_mono_ms().
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/control_jobs.h"

#define CONTROL_DIAL_MS 3000
#define CONTROL_ANSWER_MS 10000
#define CONTROL_FOREVER_MS (INT64_MAX / 2)

/* Connects to `job` and returns the descriptor. `job` is a job as job_list_find() takes it, or the
 * path of a control socket. -1: there is no such job, or several. */
int control_client_dial(const struct job_list *list, const char *job, struct error *err);
/* Connects to the job with this id. Waits until then if it has just started, or has too many
 * clients. */
int control_client_dial_in(const struct job_list *list, const char *job, int64_t until_ms,
                           struct error *err);

int control_client_send(int fd, const json_t *request, int64_t until_ms, struct error *err);
/* The next answer, which the caller owns. NULL: there was none until then, or it was an error,
 * whose text is in `err`. */
json_t *control_client_receive(int fd, int64_t until_ms, struct error *err);

/* Asks at `fd` for the end of the job. The answer comes then. */
int control_client_ask_end(int fd, struct error *err);
/* The end of a job by its record, which the caller owns. NULL: the job is lost, and the error says
 * so; or it still runs, and `err` stays as it is. */
json_t *control_client_end(const struct job_list *list, const char *id, struct error *err);

/* Adds to a request who asks: this command of hvdrun, and the user. */
void control_client_sign(json_t *request, const char *command);

/* Sends `request` to the job at `fd` and returns its answer, which it must give within
 * CONTROL_ANSWER_MS. */
json_t *control_client_ask(int fd, const json_t *request, struct error *err);
