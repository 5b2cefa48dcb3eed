/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the rendezvous key/value store, for the HTTP parser, the frames and the store,
 * with the rules about names that they share. Pure.
 *
 * A scope and a key are printable ASCII without a space and without '/', at most
 * RENDEZVOUS_NAME_MAX bytes. Requests are idempotent: the clients repeat them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* POST /progress/EPOCH.SEAT: the status endpoint of a worker (agent/progress_door.h). */
#define STATUS_SCOPE "progress"

#define RENDEZVOUS_METHOD_LIST(X)  \
    X(RENDEZVOUS_GET, "GET")       \
    X(RENDEZVOUS_PUT, "PUT")       \
    X(RENDEZVOUS_DELETE, "DELETE") \
    X(RENDEZVOUS_POST, "POST") /* only to STATUS_SCOPE, which is not in the store */

enum rendezvous_method {
#define RENDEZVOUS_METHOD_ENUM(name, text) name,
    RENDEZVOUS_METHOD_LIST(RENDEZVOUS_METHOD_ENUM)
#undef RENDEZVOUS_METHOD_ENUM
};

enum {
    RENDEZVOUS_NAME_MAX = 511, /* "local_" + a host name of 255 + "_process_set_hash_" + digits */

    RENDEZVOUS_PAIR_BYTES = 136, /* Gloo's address of one rank for another */

    /* One request fits one frame (1 MiB) with its names: the largest body there is, the addresses
     * of a rank for all others, stays below it up to 7,600 ranks. */
    RENDEZVOUS_BODY_MAX = 1024 * 1024 - 4096,
    STATUS_BODY_MAX = 64 * 1024, /* as Kubeflow's server */
};

struct rendezvous_request {
    enum rendezvous_method method;
    const char *scope, *key;
    const void *body; /* of a PUT or POST; NULL when length is 0 */
    size_t length;
    const char *authorization; /* the header of HTTP; NULL: none, or not from HTTP */
};

/* Bytes that so many ranks can need in the store, with a margin. In a full mesh each rank stores
 * an address for each other one, in one context after the other, and a few short keys. */
uint64_t rendezvous_memory_need(int64_t ranks);

const char *rendezvous_method_name(enum rendezvous_method method);
int rendezvous_method_parse(const char *name, size_t length, enum rendezvous_method *out); /* or -1
                                                                                            */
bool rendezvous_name_is_valid(const char *name, size_t length);

/* For a request from a frame: method, both names and the length are within bounds. */
bool rendezvous_request_is_valid(const struct rendezvous_request *request);

/* A rank as a key: "0", "17", no leading zero, below 10^9. Clients poll for these keys, which hold
 * addresses. Any other key (such as rank_3) is a hint that they ask for once. */
bool rendezvous_key_is_index(const char *key, int64_t *index);

/* `rank_and_size` and `worker_addresses`: not storage but calls to the elastic part. */
bool rendezvous_scope_is_elastic(const char *scope);
