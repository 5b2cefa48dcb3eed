/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests over the control socket of a running job: one JSON object in, one JSON object out.
 * No I/O.
 *
 *   {"do": "status"}                                the state of the job, see below
 *   {"do": "usage"}                                 what its ranks and hosts use
 *   {"do": "stop", "grace_s": 60}                   ends the job as Ctrl-C does, with that grace
 *   {"do": "signal", "signal": "USR1", "ranks": "0,4-7"}   sends it to these ranks, or to all
 *   {"do": "stacks", "ranks": "0,4-7", "native": true}   where these ranks are, or all, see below
 *   {"do": "wait"}                                  the answer comes at the end of the job
 *   {"do": "drain", "host": "c", "within_s": 60}    drains the host, at the latest after that time
 *   {"do": "undrain", "host": "c"}                  the job may use the host again
 *   {"do": "add", "hosts": "d:4,e:2"}               adds hosts, in the form of -H
 *
 * A request to stop or to signal may say who asks, with "command", a command of hvdrun, and "user",
 * the name of the user.
 *
 * The last three are for elastic jobs. A request may have "protocol": N, the CONTROL_PROTOCOL of
 * the client; a job of an older version refuses it. Unknown keys are ignored.
 *
 * driver/tell/status_json.h has the answer to a status request. usage/usage_json.h has the answer
 * to a usage request. Such a request also makes the job ask its agents for new values. record.h has
 * most of the answer to "wait". The answer to "stacks" comes after at most a few seconds; with
 * native frames, after 8 s. It has the keys below, and a reader must expect that any of them is
 * missing:
 *
 *   "stacks"    the same list as in --report, with the processes that do not run Python
 *   "text"      the same as a tree
 *   "missing"   HOSTS that did not answer, or null
 *   "remarks"   lines that say why native frames are missing, or null
 *   "odd"       a line that names the ranks that are elsewhere than most, or null
 *
 * The answer to the other requests is {"ok": true}. The answer to a request that fails is
 * {"error": LINE}.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

#define CONTROL_PROTOCOL 1

struct control_later;

/* The client that asks. Borrowed. */
struct control_asker {
    const char *command; /* of hvdrun, as the client says; NULL: not known */
    const char
        *user; /* as the client says, but only root's processes are root's; NULL: not known */
};

/* Implemented by the driver. None of them may destroy the control. The text in `err` becomes the
 * answer. */
struct control_ops {
    json_t *(*status)(void *context); /* the caller's */
    json_t *(*usage)(void *context);  /* likewise */
    /* `grace_ms` -1: the job's own grace */
    int (*stop)(void *context, const struct control_asker *asker, int64_t grace_ms,
                struct error *err);
    /* `ranks` NULL: all */
    int (*signal)(void *context, const struct control_asker *asker, int number, const char *ranks,
                  struct error *err);
    /* `ranks` as above. 0: it has taken `later`, and answers with it. */
    int (*stacks)(void *context, const char *ranks, bool native, struct control_later *later,
                  struct error *err);
    int (*drain)(void *context, const char *host, bool has_deadline, int64_t within_ms,
                 struct error *err);
    int (*undrain)(void *context, const char *host, struct error *err);
    int (*add)(void *context, const struct host_list *hosts, struct error *err);
};

/* `by_root`: the client is a process of root. The answer, which the caller frees. NULL: it comes
 * through `later`, if that is taken; otherwise at the end of the job. */
json_t *control_request_answer(const char *line, size_t length, bool by_root,
                               const struct control_ops *ops, void *context,
                               struct control_later *later);
