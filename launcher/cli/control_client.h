/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a running job over its control socket (driver/control/control.h). These functions block for
 * at most CONTROL_ANSWER_MS, because the program that calls them does nothing else.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

#define CONTROL_ANSWER_MS 10000

/* Connects to `job` and returns the descriptor. `job` is the id of a job or the path of its socket.
 * NULL means the only running job of this user. -1: there is no such job, or `job` is NULL and
 * there are several, which the error lists. */
int control_client_dial(const char *job, struct error *err);

/* Sends `request` to the job at `fd` and returns its answer, which the caller owns. NULL: the job
 * did not answer, or it answered with an error, whose text is in `err`. */
json_t *control_client_ask(int fd, const json_t *request, struct error *err);
