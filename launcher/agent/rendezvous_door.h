/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous of this node: HTTP on loopback for our workers, frames to the driver. It belongs
 * to one epoch at a time, whatever epoch the workers were started in.
 */
#pragma once

#include "agent/post.h"
#include "io/loop.h"
#include "rendezvous/http.h"
#include "wire/control.pb-c.h"

struct rendezvous_door;

/* `post` is the agent's. NULL: no socket could be opened. */
struct rendezvous_door *rendezvous_door_create(struct loop *loop, const struct post *post,
                                               struct error *err);
/* Gives POST requests, which are for the status endpoint, to `post`. It returns the status of HTTP
 * and makes the body of the answer, which the door frees. */
void rendezvous_door_posts(struct rendezvous_door *door,
                           int (*post)(void *context, const struct rendezvous_request *request,
                                       char **body),
                           void *context);
void rendezvous_door_destroy(struct rendezvous_door *door);
int rendezvous_door_port(const struct rendezvous_door *door);
/* Limits what it stores to what `size` workers can need, `local_size` of them on this node. */
void rendezvous_door_expect(struct rendezvous_door *door, uint32_t size, uint32_t local_size);
void rendezvous_door_begin(struct rendezvous_door *door, uint32_t epoch);
void rendezvous_door_reply(struct rendezvous_door *door, const Hvdrun__KvReply *message);
