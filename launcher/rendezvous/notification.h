/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request to the notification service of a Horovod elastic worker, and its answer. Pure.
 *
 * A message is HMAC-SHA256(key, body), the body's length (signed 32 bit, in the byte order of the
 * machine: both ends are on one), and the body, a pickle of an object. The answer to a request is
 * one message on its connection. The request has a short form that every Python can load. Of the
 * answer we check the length, the HMAC and the name of its class.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
