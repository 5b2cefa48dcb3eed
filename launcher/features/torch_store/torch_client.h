/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a store: what each of its queries does to the store, and the answers to it. Others
 * than the files of the store only look at `out` and `has_more`. Pure. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "features/torch_store/torch_keys.h"

#define TORCH_MEMORY_MAX ((size_t)2 << 30)
#define TORCH_UNREAD_MAX ((size_t)1 << 20)   /* answers with which a client's next query waits */
#define TORCH_ANSWERS_FREE ((size_t)4 << 10) /* answers of a client that do not count */

struct torch_store;

struct torch_client {
    struct torch_store *store;
    LIST_ENTRY(torch_client) others;
    void *owner;
    struct torch_reader reader;
    struct buf in;
    size_t charged;        /* for the bytes that have come */
    struct send_queue out; /* to be sent to it; then call torch_client_sent() */
    size_t answers;        /* bytes in it that are charged */
    size_t given;          /* bytes that were not, since it was empty */
    bool unanswered;       /* an answer did not fit */
    size_t work;           /* bytes that were copied for it in this turn */
    bool has_more;         /* its turn has ended before its queries did */
    struct torch_wait wait;
    uint64_t wait_hash;    /* of the keys for which it waited last, */
    int64_t wait_since_ms; /* since then */
    char *polled; /* the counter for which it has asked last; NULL: it did something else */
    size_t polled_length;
    int64_t polled_since_ms, polled_ms;
};

struct torch_store {
    struct torch_keys keys;
    /* There are bytes in the queue of a client of this owner. It must not leave the store yet. */
    void (*answered)(void *owner);
    LIST_HEAD(, torch_client) all;
    size_t silent, old; /* connections that have sent nothing; those of the dialects A and B */
};

/* Carries out a query that has come whole; `at` is behind its type. Its answers are in `out`.
 * Behind the first ones, each counts against the limit of memory until it is sent. Without room for
 * one, `unanswered` is set. A long value is shared with the store. -1: the client is to be dropped,
 * and `err` says why. */
int torch_carry_out(struct torch_client *client, const uint8_t *at, struct error *err);

void torch_woken(void *client);    /* its wait is over */
int torch_full(struct error *err); /* -1: why a client is dropped when the memory is full */
