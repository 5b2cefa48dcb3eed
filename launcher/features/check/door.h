/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening end of a probe of `hvdrun check`, and the protocol of both ends (call.h). The door
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
