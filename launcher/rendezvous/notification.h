/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notification service of a Horovod elastic worker: what the worker registers about it, the
 * request to it, and its answer. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * What a Horovod elastic worker registers (`PUT /worker_addresses/<host>:<local rank>`): where its
 * notification service listens, and the key that authenticates both sides there. The body is base64
 * of a pickle of ({interface: [(IPv4 address, port), ...], ...}, key).
 */

enum {
    REGISTRATION_BODY_MAX = 64 * 1024, /* bytes of base64 */
    REGISTRATION_ADDRESSES_MAX = 256,
    REGISTRATION_INTERFACE_MAX = 63, /* bytes of a name */
    REGISTRATION_KEY_MAX = 256,
};

struct registration_address {
    char interface[REGISTRATION_INTERFACE_MAX + 1]; /* '?' for each byte that is not ASCII */
    char text[16];                                  /* IPv4, as inet_ntop(3) writes it */
    uint16_t port;                                  /* host byte order, never 0 */
};

struct registration {
    struct registration_address *addresses; /* in the order in which they came */
    size_t count;                           /* at least 1 */
    uint8_t key[REGISTRATION_KEY_MAX];
    size_t key_length; /* at least 1 */
};

/* -1: `err` says what is wrong ("the worker's registration cannot be read: ..."), and `out`
 * is empty. */
int registration_read(const void *body, size_t length, struct registration *out, struct error *err);
void registration_destroy(struct registration *registration); /* accepts an all-zero struct */

/*
 * The request to the notification service of a Horovod elastic worker, and its answer.
 *
 * A message is HMAC-SHA256(key, body), the body's length (signed 32 bit, in the byte order of the
 * machine: both ends are on one), and the body, a pickle of an object. The answer to a request is
 * one message on its connection. The request has a short form that every Python can load. Of the
 * answer we check the length, the HMAC and the name of its class.
 */

enum { NOTIFICATION_REQUEST_MAX = 160, NOTIFICATION_REPLY_MAX = 4096 };

/* What has happened to the job's hosts. After NOTIFICATION_REMOVED workers do not send their state
 * to each other: never use it when a new worker joins. */
enum notification_result {
    NOTIFICATION_NONE = 0,
    NOTIFICATION_REMOVED = 1,
    NOTIFICATION_ADDED = 2,
    NOTIFICATION_BOTH = 3,
};

/* HostsUpdatedRequest(timestamp, result), `timestamp` in seconds since 1970. A worker acknowledges
 * but ignores one that is not later than the one before. Returns how many bytes were written. */
size_t notification_write_request(uint8_t out[NOTIFICATION_REQUEST_MAX], const void *key,
                                  size_t key_length, uint64_t timestamp, int result);

enum notification_verdict {
    NOTIFICATION_MORE, /* the answer is not complete */
    NOTIFICATION_ACKNOWLEDGED,
    NOTIFICATION_BAD, /* notification_reply_problem() says why */
};

struct notification_reply;

/* Copies the key. */
struct notification_reply *notification_reply_create(const void *key, size_t key_length);
void notification_reply_destroy(struct notification_reply *reply); /* accepts NULL */

/* Bytes as they come, in any pieces. Bytes after a verdict are ignored. */
enum notification_verdict notification_reply_feed(struct notification_reply *reply,
                                                  const void *bytes, size_t length);
const char *notification_reply_problem(const struct notification_reply *reply); /* "" if none */
