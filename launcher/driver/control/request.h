/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests over the control socket of a running job: one JSON object in, one JSON object out.
 * No I/O.
 *
 *   {"do": "status"}                                the state of the job, see below
 *   {"do": "drain", "host": "c", "within_s": 60}    drains the host, at the latest after that time
 *   {"do": "undrain", "host": "c"}                  the job may use the host again
 *   {"do": "add", "hosts": "d:4,e:2"}               adds hosts, in the form of -H
 *
 * Unknown keys are ignored. The answer to a status request:
 *
 *   {"job": ID, "state": TEXT, "epoch": N, "size": N (ranks), "up_s": SECONDS,
 *    "hosts": [{"host": NAME, "state": TEXT, "slots": N, "ranks": [N, ...], "spare": true,
 *               "drain_s": SECONDS (left until its deadline),
 *               "blacklisted_s": SECONDS (left; null: for the rest of the job)}, ...],
 *    "events": [{"time": SECONDS since 1970, "text": LINE}, ...] (the last ones)}
 *
 * A reader must expect that any of these keys is missing. The answer to the other requests is
 * {"ok": true}. The answer to a request that fails is {"error": LINE}.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

/* Implemented by the driver. None of them may destroy the control. The text in `err` becomes the
 * answer. */
struct control_ops {
    json_t *(*status)(void *context); /* the caller's */
    int (*drain)(void *context, const char *host, bool has_deadline, int64_t within_ms,
                 struct error *err);
    int (*undrain)(void *context, const char *host, struct error *err);
    int (*add)(void *context, const struct host_list *hosts, struct error *err);
};

/* The answer, which the caller frees; never NULL. */
json_t *control_request_answer(const char *line, size_t length, const struct control_ops *ops,
                               void *context);
