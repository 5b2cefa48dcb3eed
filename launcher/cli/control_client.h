/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking a running job over its control socket (driver/control/control.h). Blocks, at most for
 * CONTROL_ANSWER_MS: the program that calls this does nothing else.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

#define CONTROL_ANSWER_MS 10000

/* A connection to `job`: its id, the path of its socket, or NULL for the only one of this user that
 * runs. -1: there is none, or (NULL) several, which the error lists. */
int control_client_dial(const char *job, struct error *err);

/* The answer (the caller's) of the job at the other end of `fd`; NULL: it has not answered, or with
 * an error, whose text is `err`'s. */
json_t *control_client_ask(int fd, const json_t *request, struct error *err);
