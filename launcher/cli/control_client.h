/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job that a command is about: finds it among those of this machine, and asks it over its
 * control socket (driver/control/control.h). These functions block, because the program that calls
 * them does nothing else. `until_ms` is a time of clock_mono_ms().
 *
 * A command takes the id of a job, its name, the beginning of its id, or the beginning of the
 * number at its end. A running job comes before one that has ended. Of jobs with one name
 * that have ended, the last one is meant.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/control_jobs.h"

#define CONTROL_DIAL_MS 3000
#define CONTROL_ANSWER_MS 10000
#define CONTROL_FOREVER_MS (INT64_MAX / 2)

#define JOB_LIST_NAMES_MAX 900 /* bytes of the list of jobs in an error */

/* The job that `word` names. NULL as `word`: the only running job. Borrowed. NULL: there is none,
 * or there are several, and the error says which. `over_too`: it may have ended. */
const char *job_list_find(const struct job_list *list, const char *word, bool over_too,
                          struct error *err);

/* How many jobs `word` names; NULL: all that run. *found is the first one, borrowed. Appends all to
 * `names`, with their commands: "a (./train), b (./train)". */
size_t job_list_search(const struct job_list *list, const char *word, bool over_too,
                       const char **found, struct buf *names);

/* The job that ended last. `name`: of those with this name; NULL: of all. Borrowed. NULL: there is
 * none. */
const char *job_list_last(const struct job_list *list, const char *name);

/* The name of a job (--job-name). The caller frees it. NULL: it has none. */
char *job_list_name(const struct job_list *list, const char *id);

/* Connects to `job` and returns the descriptor. `job` is a job as job_list_find() takes it, or the
 * path of a control socket. -1: there is no such job, or several. */
int control_client_dial(const struct job_list *list, const char *job, struct error *err);
/* Connects to the job with this id. Waits until then if it has just started, or has too many
 * clients. */
int control_client_dial_in(const struct job_list *list, const char *job, int64_t until_ms,
                           struct error *err);

/* Adds the protocol to a request that has none. What jobs of all versions know has 1. -1 as
 * `fd`, with an error: there was no job to connect to. */
int control_client_send(int fd, json_t *request_take, int64_t until_ms, struct error *err);
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

/* Sends the request as control_client_send() does, and returns the answer, which the job must give
 * within CONTROL_ANSWER_MS. */
json_t *control_client_ask(int fd, json_t *request_take, struct error *err);
