/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening end of a probe (check_socket.h): open while `hvdrun check` asks by which addresses
 * the nodes reach each other, on one address only. A connection that does not begin with the token
 * within a few seconds is closed, and so is one that stalls. Bytes after the token are counted and
 * dropped.
 */
#pragma once

#include "base/error.h"
#include "features/check/socket.h"
#include "io/loop.h"

struct check_door;

/* Listens on a port that the kernel chooses. NULL: it cannot. */
struct check_door *check_door_create(struct loop *loop, const char *address,
                                     const uint8_t token[CHECK_TOKEN], struct error *err);
void check_door_destroy(struct check_door *door); /* accepts NULL */
uint32_t check_door_port(const struct check_door *door);

/* The time for the token, and for a stall; 5000 until this is called. */
void check_door_set_patience(struct check_door *door, int64_t milliseconds);
