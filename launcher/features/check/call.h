/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling end of a probe (features/check/door.h): one connection to another node, and its
 * result.
 *
 *   state        connected   answer right   sent for transfer_ms   count heard   limit over, error
 *   CONNECTING   GREETING                                                        over
 *   GREETING                 SENDING, over                                       over
 *   SENDING                                 COUNTING                             over
 *   COUNTING                                                       over          over
 * Without a transfer the call is over when the answer is right.
 */
#pragma once

#include "features/check/door.h"
#include "io/loop.h"
#include "wire/control.pb-c.h"

struct check_call_result {
    Hvdrun__ProbeOutcome outcome;
    char text[128]; /* with PROBE_BROKEN: what happened */
    int64_t connect_ns;
    uint64_t bytes; /* that the other end has counted */
    int64_t transfer_ns;
    char source[46]; /* our end; "" when it is not known */
};

struct check_call;

/* `done` is called once, from the loop, never from within this call; it frees the call. A token of
 * another length than CHECK_TOKEN is never accepted. `limit_ms` is for the connection with the
 * answer, and once more for the count. */
struct check_call *check_call_begin(
    struct loop *loop, const Hvdrun__ProbePeer *peer, int64_t limit_ms, int64_t transfer_ms,
    void (*done)(void *context, const struct check_call_result *result), void *context);
void check_call_cancel(struct check_call *call); /* no `done`; accepts NULL */
