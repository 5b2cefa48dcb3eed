/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running job can be asked and told over its control socket: one JSON object in, one out.
 * No I/O.
 *
 *   {"do": "status"}                                what the driver knows, see below
 *   {"do": "drain", "host": "c", "within_s": 60}    the host leaves; at the latest after so long
 *   {"do": "undrain", "host": "c"}                  it may be used again
 *   {"do": "add", "hosts": "d:4,e:2"}               more hosts, as -H has them
 *
 * Keys that are not known are ignored. The answer to a status:
 *
 *   {"job": ID, "state": TEXT, "epoch": N, "size": N (ranks), "up_s": SECONDS,
 *    "hosts": [{"host": NAME, "state": TEXT, "slots": N, "ranks": [N, ...], "spare": true,
 *               "drain_s": SECONDS (left until its deadline),
 *               "blacklisted_s": SECONDS (still to come; null: for the rest of the job)}, ...],
 *    "events": [{"time": SECONDS since 1970, "text": LINE}, ...] (the last ones)}
 *
 * of which a reader must expect any to be missing. To the others it is {"ok": true}; to what fails,
 * {"error": LINE}.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

/* The driver's side. None may destroy the control. A text in `err` is the answer. */
struct control_ops {
    json_t *(*status)(void *context); /* the caller's */
    int (*drain)(void *context, const char *host, bool has_deadline, int64_t within_ms,
                 struct error *err);
    int (*undrain)(void *context, const char *host, struct error *err);
    int (*add)(void *context, const struct host_list *hosts, struct error *err);
};

/* The answer, the caller's; never NULL. */
json_t *control_request_answer(const char *line, size_t length, const struct control_ops *ops,
                               void *context);
