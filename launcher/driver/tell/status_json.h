/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a running job, for `hvdrun status` and `hvdrun ps`:
 *
 *   {"protocol": N, "version": TEXT, "job": ID, "id": ID (that the ranks know; "job" is that of
 *    the record), "pid": N, "command": TEXT, "folder": PATH,
 *    "state": TEXT, "size": N (ranks), "started": SECONDS since 1970, "up_s": SECONDS,
 *    "restarts": N, "last_output_s": SECONDS (since then; no key before the first output),
 *    "progress": {...} (tell/progress_json.h; no key before a rank reports any),
 *    "metrics": URL (where it serves them; no key: nowhere), "page": URL (likewise, with its
 * token), "waits_for": TEXT (no key: nothing but its ranks), "hosts": [{"host": NAME, "state":
 * TEXT, "slots": N, "ranks": [N, ...]}, ...], "ranks": [{"rank": N, "host": NAME, "epoch": N,
 * "pid": N, "state": TEXT, "up_s": SECONDS, "ended": SECONDS since 1970, "exit_code": N or
 * "signal": N, "stopped": TEXT (why it cannot go on; no key: it can, as far as is known),
 *               "stopped_s": SECONDS (since somebody looked), "progress": {...}}, ...]}
 *
 * The status of an elastic job has more, and other states of hosts (driver/elastic/control.h):
 *
 *   {"epoch": N, "hosts": [{..., "spare": true, "drain_s": SECONDS (left until its deadline),
 *                           "blacklisted_s": SECONDS (left; null: the rest of the job)}, ...],
 *    "events": [{"time": SECONDS since 1970, "text": LINE}, ...] (the last ones),
 *    "epochs": [{"epoch": N, "time": SECONDS since 1970 (when its ranks ran), "size": N (ranks),
 *                "hosts": N, "cause": TEXT, "lost_s": SECONDS}, ...] (the last ones),
 *    "changes": {CAUSE: N, ...} (epochs after the first, by "host_lost", "crash", "preempted",
 *    "host_added" or "other"), "recovery_s": SECONDS (that they have taken)}
 */
#pragma once

#include "driver/job/job.h"

struct json_t;

struct json_t *status_json(const struct job *job); /* the caller's */
/* From "job" to "folder", and "size" and "started": also a part of the record (record_json.h). */
void status_json_identity(const struct job *job, struct json_t *object);
/* The programs of the job with their arguments, on one line of bounded length. The caller frees. */
char *status_command(const struct job *job);
