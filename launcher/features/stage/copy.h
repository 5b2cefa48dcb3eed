/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy of a root in the store of a host. A good one may be there. Otherwise it is built from
 * other copies and from chunks of the stream. It blocks; only one thread may use it.
 *
 *             begin                     all chunks written     end
 *   nothing   COMPLETE  (it was there)
 *             BUILDING                  BUILDING               COMPLETE
 * After a failure, what was built is removed.
 */
#pragma once

#include "features/stage/source.h"
#include "features/stage/stage.h"
#include "features/stage/store.h"

struct stage_copy_config {
    const char *place;      /* as stage_store_open() */
    struct stage_keep keep; /* copies of earlier jobs */
    struct stage_watch *watch;
};

struct stage_copy {
    struct stage_copy_config config;
    struct stage_store store;
    struct stage_list list;
    char id[STAGE_ID_ROOM];
    char *folder;       /* owned; that is being built; NULL: none is */
    int lock;           /* exclusive while it is built, then shared; -1: none */
    bool *has;          /* by content of the list: it is in the folder */
    uint64_t missing;   /* bytes that the driver must send */
    int fd;             /* of the content that is being written; -1: none */
    size_t content;     /* that one */
    struct sha256 hash; /* of what was written of it */
    bool complete;
};

/* Takes the list in either case. -1: `copy` is closed. */
int stage_copy_begin(struct stage_copy *copy, const struct stage_copy_config *config,
                     struct stage_list *list, struct error *err);

/* Does the copy miss bytes of this chunk? */
bool stage_copy_lacks(const struct stage_copy *copy, uint64_t chunk);

/* The chunks that it lacks come in order. -1: the copy is closed. */
int stage_copy_write(struct stage_copy *copy, uint64_t chunk, const uint8_t *bytes, size_t length,
                     struct error *err);
int stage_copy_end(struct stage_copy *copy, struct error *err);

/* Where the root is, once the copy is complete. The caller frees it. */
char *stage_copy_place(const struct stage_copy *copy);

/* No other job uses the copy, which is complete. For the end: the lock may be gone. */
bool stage_copy_is_alone(const struct stage_copy *copy);

/* Ends the use of a copy. It is removed if no other job uses it, and if none has kept it. One
 * that was not complete is removed. `*copy` is all zero but for its lock, -1. */
void stage_copy_close(struct stage_copy *copy);

/* `path` is a link with this text. */
bool stage_link_leads(const char *path, const char *target);
