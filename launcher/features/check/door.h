/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a probe of `hvdrun check`, and their protocol. First the listening end: the door
 * is open while the nodes are asked by which addresses they reach each other, on one address only.
 * A connection that does not begin with the token within a few seconds is closed, and so is one
 * that stalls. Bytes after the token are counted and dropped.
 *
 * The caller sends the token of the node that it wants to reach. The answer is the same token with
 * all bits inverted. So both ends know that no third machine is between, and that no other machine
 * has the same address. Then the caller sends any bytes until it shuts its end down. The other end
 * answers with the number of bytes after the token: 8 bytes, the highest first.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "io/loop.h"
#include "wire/control.pb-c.h"

#define CHECK_TOKEN 16
#define CHECK_COUNT 8

struct check_door;

/* Listens on a port that the kernel chooses. NULL: it cannot. */
struct check_door *check_door_create(struct loop *loop, const char *address,
                                     const uint8_t token[CHECK_TOKEN], struct error *err);
void check_door_destroy(struct check_door *door); /* accepts NULL */
uint32_t check_door_port(const struct check_door *door);

/* The time for the token, and for a stall; 5000 until this is called. */
void check_door_set_patience(struct check_door *door, int64_t milliseconds);

/* Numeric, of the socket's own end, into 46 bytes; "" when it is not known. Its port, or 0. */
uint32_t check_socket_own(int fd, char *text);

void check_token_answer(const uint8_t token[CHECK_TOKEN], uint8_t answer[CHECK_TOKEN]);
uint64_t check_count_get(const uint8_t in[CHECK_COUNT]);

/*
 * The calling end of a probe: one connection to another node, and its result.
 *
 *   state        connected   answer right   sent for transfer_ms   count heard   limit over, error
 *   CONNECTING   GREETING                                                        over
 *   GREETING                 SENDING, over                                       over
 *   SENDING                                 COUNTING                             over
 *   COUNTING                                                       over          over
 * Without a transfer the call is over when the answer is right.
 */

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
