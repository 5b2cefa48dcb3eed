/* SPDX-License-Identifier: Apache-2.0 */
/* What a job tells users and programs. Pieces of JSON for other writers: json_text.h. */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"

struct json_t;

/*
 * dry_run.c: `--dry-run`, the plan as a table for people and as JSON for programs. The same plan
 * gives the same bytes. Both return -1 if `out` reaches its limit (allow for about 200 bytes for
 * each rank); the text up to there stays in it.
 */

/* A summary line, then one aligned line for each rank: rank, host, local rank and size, cross
 * rank and size, app, and its shortened command. */
int dry_run_table(const struct plan *plan, const struct app_list *apps, struct buf *out);

/* One object: size, nodes [{name, slots, local_size, first_rank}] (the lowest), ranks [{rank, host,
 * local_rank, local_size, cross_rank, cross_size, app, app_rank}], apps [{argv, np}]. Bytes of a
 * command that are not UTF-8 become U+FFFD. */
int dry_run_json(const struct plan *plan, const struct app_list *apps, struct buf *out);

/*
 * report_json.c: what a job writes at its end, the JSON of --report and the trace of
 * --launch-trace.
 */

/* The report as JSON text, and as a value of jansson: with its lists of nodes, ranks and stacks, or
 * without. The caller frees them. */
char *report_json(const struct job *job);
struct json_t *report_object(const struct job *job, bool lists);

/* What waits now for ranks in libhvd: a list of lines of text, which the caller owns. */
struct json_t *report_stalls_now(const struct job *job);

/* The start in the trace event format of Chrome: a row for each node and each rank. The caller
 * frees it. */
char *report_trace(const struct job *job);

/*
 * report_failure.c: the block on the terminal that says which rank or host failed and why. Its
 * lines begin with "hvdrun: ", quoted ones with four spaces. Empty on success.
 */
void report_failure(const struct job *job, struct buf *out);

/* The host that the verdict of the job names; NULL: none. */
const char *report_verdict_host(const struct job *job);

/* The role of the last worker on this seat in the verdict. With a likely cause, the first failure
 * is a consequence. */
enum exit_role report_role(const struct job *job, int seat);

/*
 * status_json.c: the status of a running job, for `hvdrun status` and `hvdrun ps`:
 *
 *   {"protocol": N, "version": TEXT, "job": ID, "id": ID (that the ranks know; "job" is that of
 *    the record), "pid": N, "command": TEXT, "folder": PATH,
 *    "state": TEXT, "size": N (ranks), "started": SECONDS since 1970, "up_s": SECONDS,
 *    "restarts": N, "last_output_s": SECONDS (since then; no key before the first output),
 *    "progress": {...} (json_text.h; no key before a rank reports any),
 *    "metrics": URL (where it serves them; no key: nowhere),
 *    "page": URL (likewise, with its token),
 *    "waits_for": TEXT (no key: nothing but its ranks),
 *    "hosts": [{"host": NAME, "state": TEXT, "slots": N, "ranks": [N, ...]}, ...],
 *    "ranks": [{"rank": N, "host": NAME, "epoch": N, "pid": N, "state": TEXT, "up_s": SECONDS,
 *               "ended": SECONDS since 1970, "exit_code": N or "signal": N,
 *               "stopped": TEXT (why it cannot go on; no key: it can, as far as is known),
 *               "stopped_s": SECONDS (since somebody looked), "progress": {...}}, ...]}
 *
 * The status of an elastic job has more, and other states of hosts (driver/elastic/control.c):
 *
 *   {"epoch": N, "hosts": [{..., "spare": true, "drain_s": SECONDS (left until its deadline),
 *                           "blacklisted_s": SECONDS (left; null: the rest of the job)}, ...],
 *    "events": [{"time": SECONDS since 1970, "text": LINE}, ...] (the last ones),
 *    "epochs": [{"epoch": N, "time": SECONDS since 1970 (when its ranks ran), "size": N (ranks),
 *                "hosts": N, "cause": TEXT, "lost_s": SECONDS}, ...] (the last ones),
 *    "changes": {CAUSE: N, ...} (epochs after the first, by "host_lost", "crash", "preempted",
 *    "host_added" or "other"), "recovery_s": SECONDS (that they have taken)}
 */
struct json_t *status_json(const struct job *job); /* the caller's */
/* The programs of the job with their arguments, on one line of bounded length. The caller frees. */
char *status_command(const struct job *job);

/* The same file: what a driver writes into the record of its job (driver/control/record.h has the
 * keys). */

#define RECORD_LINES 20 /* of the output, in the record of a job that has ended */
#define RECORD_LINE_BYTES 1000
#define RECORD_RANKS 1000 /* of a larger job, the record has a report without ranks and hosts */

struct json_t *record_json_begin(const struct job *job); /* the caller's */
/* The folder of --log-dir as an absolute path. The caller frees it. NULL: the folder of jobs. */
char *record_log_folder(const struct job *job);
/* The job has its verdict. `brief`: if it has succeeded, its report lists no ranks and hosts. The
 * caller's. */
struct json_t *record_json_end(const struct job *job, bool brief);
/* The answer for clients that wait for the end: status, cause and text. The caller's. */
struct json_t *record_json_verdict(const struct job *job);
