/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of a host: PLACE/hvdrun-stage-UID, mode 0700, on a disk of its own. It blocks.
 *
 *   ID/list   the list of the root
 *   ID/boot   under which boot of the host the copy was written or last read through
 *   ID/once   is there if the copy is to go with the last job that uses it
 *   ID/copy/  the root, under its name
 *   .new-...  a copy that is being built; .old-...: one that is being removed
 *
 * A process that uses or builds a copy has a shared lock on its folder, and one that removes it an
 * exclusive lock.
 * The kernel ends the lock of a process that has died. `list` was modified when a job last began
 * or ended to use the copy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "features/stage/source.h"
#include "features/stage/stage.h"

/* --stage-keep: how many bytes of copies a host keeps for the next job, and for how long. */

struct stage_keep {
    uint64_t bytes; /* 0: nothing is kept */
    int64_t age_ms; /* since a job last used it */
};

#define STAGE_KEEP_USUAL "32G:7d"

/* "0", "32G", "500M:2d". Without a time it is 7 days. -1: wrong. */
int stage_keep_parse(const char *text, struct stage_keep *out, struct error *err);

struct stage_kept { /* a copy */
    uint64_t bytes;
    int64_t used_ms; /* on any clock, the same as `now_ms` */
    bool in_use;
    bool goes; /* set by stage_keep_choose() */
};

/* Which copies go: those that are too old, and then the least recently used ones, until the rest
 * and `coming` more bytes keep the limit. One that is in use counts, and stays. */
void stage_keep_choose(const struct stage_keep *keep, struct stage_kept *copies, size_t count,
                       uint64_t coming, int64_t now_ms);

struct stage_store {
    char *path; /* owned; the caller of stage_store_open() frees it */
    struct stage_watch *watch;
};

/* `place` "": TMPDIR, or /tmp. Creates what is missing. -1: the folder is not safe. */
int stage_store_open(const char *place, struct stage_watch *watch, struct stage_store *store,
                     struct error *err);

/* -1, with the errno `code` of what could not be done. A full disk and a quota read alike. */
int stage_store_fails(int code, const char *what, const char *path, struct error *err);

/* The shared lock of a complete copy: a descriptor, which the caller closes. -1: there is no such
 * copy. It waits for those who only look. */
int stage_store_take(const struct stage_store *store, const char *id);
/* 1: now the lock is exclusive. 0: another one uses the copy; the lock may be gone. */
int stage_store_claim(int lock);
void stage_store_used(const struct stage_store *store, const char *id); /* now */

/* An empty folder for a copy that is being built, which the caller frees, and the lock. NULL and
 * `err`. */
char *stage_store_build(const struct stage_store *store, int *lock, struct error *err);
/* Gives a copy that is complete its name. 1: done. 0: there is one of that name. -1 and `err`. */
int stage_store_finish(const struct stage_store *store, const char *folder, const char *id,
                       struct error *err);

/* Removes a folder of the store with all that is in it; under another name first. It ends early if
 * it must, and another call of stage_store_tidy() removes the rest. */
void stage_store_remove(const struct stage_store *store, const char *name);

/* The ids of all copies, the one that was used last first. */
void stage_store_ids(const struct stage_store *store, struct strv *out);
/* -1: it cannot be read. */
int stage_store_list(const struct stage_store *store, const char *id, struct stage_list *out);

/* Removes what dead processes have left, and copies, so that `keep` holds with `coming` more
 * bytes. -1: the watch says stop. */
int stage_store_tidy(const struct stage_store *store, const struct stage_keep *keep,
                     uint64_t coming, struct error *err);

/* ID/boot is of the present boot. */
bool stage_store_is_fresh(const struct stage_store *store, const char *id);
/* Writes a file beside the copy. */
int stage_store_mark(const char *folder, const char *name, const char *text, size_t length,
                     struct error *err);
int stage_store_refresh(const char *folder, struct error *err); /* it is, from now on */
