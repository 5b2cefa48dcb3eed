/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The submissions of a member that are not complete. Those of tensors that the member's cache has
 * are found by their number there, all others by their key. So a training step, whose tensors are
 * all known, does not put a name into a table or take one out.
 */
#pragma once

#include "base/map.h"
#include "core/message.h"

struct pending {
    struct request request;
    void *token;
    size_t id; /* NO_ID: reported as a whole request */
    bool reported;
    struct pending *next; /* in a list of the member, or of those for later use */
};

struct pendings {
    struct map by_key;      /* without a number -> struct pending */
    struct pending **by_id; /* with one */
    size_t capacity, count;
    struct pending *spare; /* for later use: a list */
};

void pendings_init(struct pendings *pendings, size_t capacity);
void pendings_destroy(struct pendings *pendings);

/* NULL: there is none. `id` is the number of the key in the cache, or NO_ID. A submission may have
 * been made before its key had the number, so both count. */
struct pending *pendings_find(const struct pendings *pendings, size_t id, const char *key);

/* Takes the request. There must not be a submission with its key. */
struct pending *pendings_add(struct pendings *pendings, size_t id, const struct request *request,
                             void *token);
/* Its number gets another meaning. */
void pendings_lose_number(struct pendings *pendings, struct pending *pending);
/* It is the caller's now, until pendings_recycle(). */
void pendings_remove(struct pendings *pendings, struct pending *pending);
/* Its request was taken, or destroyed. */
void pendings_recycle(struct pendings *pendings, struct pending *pending);

/* Removes all of them: a list. */
struct pending *pendings_take_all(struct pendings *pendings);
