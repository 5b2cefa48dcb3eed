/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --on-event COMMAND: runs a command of the user for the events of a job that a person wants to
 * hear of. The event is on its stdin as one JSON object:
 *
 *   {"event": NAME, "time": SECONDS since 1970, "job": ID, "command": TEXT, "missed": N, ...}
 *
 * followed by what --events writes about it. NAME is started, rank_failed, host_lost, restarted,
 * hung or ended. "missed" counts the events before it for which the command was not run.
 *
 * The job never waits for the command. At most EVENTS_AT_ONCE commands run at a time, and
 * EVENTS_WAITING events wait; further ones are missed. A command has EVENTS_LIMIT_MS. After the end
 * of the job hvdrun waits that long, and not longer, for those that still run or wait.
 */
#pragma once

#include "driver/job/job.h"

#define EVENTS_AT_ONCE 4
#define EVENTS_WAITING 32
#define EVENTS_LIMIT_MS 10000

struct events_command;
struct json_t;

/* NULL command: NULL. Every function accepts NULL. */
struct events_command *events_command_create(const struct job *job, const char *command,
                                             struct error *err);
void events_command_destroy(struct events_command *command); /* kills those that run */

/* `object` is what --events writes, and stays the caller's. Does nothing for other events. */
void events_command_take(struct events_command *command, const char *event,
                         const struct json_t *object);

/* No event follows: calls over(context) from the loop when no command runs or waits, or at the time
 * limit. false: there is nothing to wait for, and no call. */
bool events_command_finish(struct events_command *command, void (*over)(void *context),
                           void *context);
