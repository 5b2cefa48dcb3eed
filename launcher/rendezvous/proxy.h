/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the rendezvous, between the server for the workers and the frames to the
 * driver's store. It answers from the cache where it can, and asks the driver otherwise. It asks
 * once when several workers want the same key. Pure.
 *
 * An `id` numbers a question to the driver and a `token` a connection of the server. Several tokens
 * may wait for one id.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rendezvous/http.h"

struct rendezvous_proxy_ops {
    /* Send this question to the driver; everything is borrowed until it returns. Frames must
     * arrive in the order of these calls. May call rendezvous_proxy_reply() at once. */
    void (*ask)(void *context, uint64_t id, const struct rendezvous_request *request);
    /* No worker waits for this question's answer any longer (the driver may hold it). */
    void (*cancel)(void *context, uint64_t id);
    /* The answer for one worker: rendezvous_server_reply(). */
    void (*answer)(void *context, uint64_t token, int status, const void *body, size_t length);
};

enum { RENDEZVOUS_CACHE_MAX = 256 * 1024 * 1024 };

struct rendezvous_proxy;

struct rendezvous_proxy *rendezvous_proxy_create(const struct rendezvous_proxy_ops *ops,
                                                 void *context, size_t cache_limit);
void rendezvous_proxy_destroy(struct rendezvous_proxy *proxy); /* sends no answers */

/* Another limit for the cache than the first one. */
void rendezvous_proxy_limit(struct rendezvous_proxy *proxy, size_t cache_limit);

/* From the server: a worker's request, and a worker that has gone before its answer. */
void rendezvous_proxy_request(struct rendezvous_proxy *proxy, uint64_t token,
                              const struct rendezvous_request *request);
void rendezvous_proxy_dropped(struct rendezvous_proxy *proxy, uint64_t token);

/* From the driver; an id that is not (any longer) asked for is ignored. */
void rendezvous_proxy_reply(struct rendezvous_proxy *proxy, uint64_t id, int status,
                            const void *body, size_t length);

/* A new epoch: forgets the cache. Questions in progress stay; the driver answers them all. */
void rendezvous_proxy_begin(struct rendezvous_proxy *proxy);
