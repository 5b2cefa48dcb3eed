/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the launcher's HTTP store, through which the ranks of a job exchange addresses.
 *
 * Its requests have the form that Horovod's workers use: one connection for each request, only the
 * headers Host and Content-Length, and a Content-Length of 0 without a body. 200 and 404 are
 * answers. After anything else, it waits 500 ms and repeats the request, three times in all.
 *
 * Each function may wait until the time-out of the store. A non-zero `*stop` ends the wait within
 * 50 ms, from any thread. All functions return HVD_OK, HVD_ERR_PEER_LOST (stopped),
 * HVD_ERR_TIMEOUT, or HVD_ERR_ENGINE (the store cannot be reached, or answers something else).
 */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "engine/engine.h"

/* Borrows everything. */
struct store {
    const char *host; /* an address or a name */
    int port;
    int64_t timeout_ms;
    const atomic_bool *stop;
};

/* `scope` and `key` have only letters, digits, and the characters "_.:%-". */
enum hvd_status store_put(const struct store *store, const char *scope, const char *key,
                          const void *bytes, size_t length, struct error *err);
/* Waits until the key exists, and replaces the content of `value`. The headers of the answer pass
 * through `value` too, so its limit must be at least STORE_VALUE_LEAST. */
#define STORE_VALUE_LEAST ((size_t)64 << 10)
enum hvd_status store_wait(const struct store *store, const char *scope, const char *key,
                           struct buf *value, struct error *err);
enum hvd_status store_delete(const struct store *store, const char *scope, const char *key,
                             struct error *err);
