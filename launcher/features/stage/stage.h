/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --stage: files that each host gets on a disk of its own before the job starts.
 *
 * A *root* is a file or folder that --stage names. The driver lists all that is below it, with a
 * hash of each content: the *list* of the root (below). The hash of the list is the root's id.
 * Each agent has a *store* (store.h), a folder of the user on its own disk. It holds the copies of
 * roots, each under its id. What a copy needs and other copies have is linked or copied from there.
 * The rest comes from the driver.
 *
 * The contents of a list, one after the other, are its *stream*. It is sent in *chunks* of
 * STAGE_CHUNK bytes.
 *
 *   driver                           agent
 *   STAGE  list of root 0     ->             (a node that has said HELLO)
 *                             <-     STAGED  which chunks are missing
 *   STAGE  a chunk            ->             at most STAGE_WINDOW that are not STAGED yet
 *                             <-     STAGED  how many it has written
 *                             <-     STAGED  the copy is complete, or a problem
 *   STAGE  list of root 1 ...
 *   then the node counts as up
 *
 * The driver reads a chunk once for all hosts that are near each other in the stream. It keeps the
 * last STAGE_CACHE chunks, and all links share these. A host that is further behind makes the
 * driver read its chunks again. So a slow host neither holds the others up nor fills memory.
 *
 * Both ends read, hash and write in a thread (work_thread.h), for a disk or server may not answer.
 * A host that shows no progress for STAGE_SILENCE_MS has failed. The progress counts, and not the
 * time in all.
 *
 * A copy is read-only, because jobs share it, and copies share files. An agent holds a shared lock
 * on each copy that its job uses (flock of the folder), so nobody removes it meanwhile. A copy is
 * built in another folder, and renamed when it is complete. If two agents build the same one, the
 * first rename wins, and the other agent takes that copy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sha256.h"

#define STAGE_CHUNK ((size_t)512 << 10)
#define STAGE_WINDOW 8 /* chunks; less with many hosts */
#define STAGE_CACHE 64 /* chunks: 32 MiB */
#define STAGE_SILENCE_MS 30000
#define STAGE_ROOTS_MAX 64
#define STAGE_LIST_MAX ((size_t)56 << 20) /* bytes, below what a frame may have */

/*
 * list.c: the list of a root: what is in it, in an order in which a folder comes before what it
 * holds.
 *
 * A record is a line of plain text and one or two names, each of which ends with NUL:
 *   d -                             NAME
 *   l -                             NAME TARGET
 *   f SIZE SECONDS NANOSECONDS HASH NAME         x: the same, executable
 * The first record is the root itself, and its name has no slash. The others begin with that name
 * and a slash. Names are any bytes but NUL: newlines, and what is not UTF-8.
 *
 * The agent trusts a list no further than stage_list_read(): no name leads out of the root, nothing
 * is below a link or a file, and nothing comes twice.
 */

struct stage_file {
    char kind;          /* 'd', 'l', 'f' or 'x' */
    const char *name;   /* borrowed from the list */
    const char *target; /* of a link */
    uint64_t size;
    int64_t seconds; /* its time of modification */
    uint32_t nanoseconds;
    uint8_t hash[SHA256_SIZE];
    uint64_t at; /* of the content in the stream */
};

struct stage_list {
    char *text; /* owned */
    size_t length;
    struct stage_file *files;
    size_t count;
    size_t *contents; /* the files whose contents are the stream: those that are not empty */
    size_t content_count;
    uint64_t stream; /* bytes of all */
};

/* Appends the record. -1: the list would be too long. */
int stage_list_put(struct buf *out, const struct stage_file *file);

/* Takes `text` in either case. -1: it is not a list; `out` is empty. */
int stage_list_read(char *text, size_t length, struct stage_list *out, struct error *err);
void stage_list_destroy(struct stage_list *list); /* accepts an all-zero struct */

#define STAGE_ID_ROOM 33
void stage_list_id(const struct stage_list *list, char out[STAGE_ID_ROOM]);

static inline bool stage_file_is_plain(const struct stage_file *file)
{
    return file->kind == 'f' || file->kind == 'x';
}

/* What `below` the root ("" or "/...") names, or the link that leads there. NULL: nothing. */
const struct stage_file *stage_list_entry(const struct stage_list *list, const char *below);

uint64_t stage_list_chunks(const struct stage_list *list);
/* How many bytes the chunk of a stream has; 0: it does not exist. */
size_t stage_chunk_size(uint64_t stream, uint64_t chunk);

/* The first of list->contents that ends behind this place of the stream; content_count: none does.
 */
size_t stage_list_find(const struct stage_list *list, uint64_t at);

/*
 * paths.c: paths that change when files are staged: what a job names below a root becomes the same
 * below the copy. And where symbolic links lead.
 */

struct stage_move {   /* one of the names of a root, and its copy */
    const char *from; /* absolute, without "." and ".." */
    const char *to;
    const struct stage_list *list; /* what it has */
};

struct stage_moves {
    struct stage_move *items;
    size_t count;
};

/* `path` below `folder`, or itself if it is absolute; without ".", ".." and double slashes, as if
 * no part of it were a symbolic link. The caller frees it. */
char *stage_path_clean(const char *folder, const char *path);

/* Is `path` `folder`, or below it? Then this is the rest, "" or "/...". NULL: no. */
const char *stage_path_below(const char *path, const char *folder);

/* The new path of one that a root has (of several, the innermost), relative to `folder`. What
 * comes behind the name of the root stays byte for byte. NULL: it stays. The caller frees it. */
char *stage_move_path(const struct stage_moves *moves, const char *folder, const char *path);

/* A word of a command line, which is a path if it has a slash. A name alone may be any word, so it
 * moves only if a root of that name is a file. NULL: it stays. `folder`: where the command starts.
 */
char *stage_move_word(const struct stage_moves *moves, const char *folder, const char *word);

/* "NAME=value" of the environment. The variables are those that have a path, or several with colons
 * between them. NULL: it stays. */
char *stage_move_variable(const struct stage_moves *moves, const char *pair);

/* The text that a link has in the copy. `root` and `folder`, which has the link, are absolute and
 * without symbolic links. `target` is the text of the link. A target in the root becomes relative,
 * one outside becomes absolute. The caller frees it. */
char *stage_link_target(const char *root, const char *folder, const char *target);

struct stage_root_words { /* of --stage PATH[:DEST] */
    char *path, *dest;    /* dest NULL: none. The caller frees both. */
};

/* The last colon counts; "\:" is one of the name. -1: a part is empty. */
int stage_root_parse(const char *text, struct stage_root_words *out, struct error *err);

/*
 * fanout.c: which chunk goes to which host next, and which chunk is read next. Pure: bytes are not
 * its task.
 *
 * Each host has the chunks that it lacks, and may have a few of them on the way at once. A chunk
 * that was read stays in a cache until others displace it. So hosts that are near each other share
 * what is read. A host that is far behind holds nobody up: its chunks are read again for it.
 */

struct fanout_range {
    uint64_t first, count;
};

struct fanout_host {
    struct fanout_range *lacks; /* owned; in rising order */
    size_t count;
    size_t range;    /* of the next chunk; `count`: all are sent */
    uint64_t offset; /* in that */
    uint64_t total;  /* chunks that it lacks */
    uint64_t sent, taken;
    uint32_t root;
    bool wants; /* it has said what it lacks of this root */
};

/* `pairs` as the host has sent them. false: they are not ranges in rising order below `chunks`. */
bool fanout_host_begin(struct fanout_host *host, uint32_t root, const uint64_t *pairs,
                       size_t pair_count, uint64_t chunks);
void fanout_host_clear(struct fanout_host *host); /* between two roots, or at the end */

/* The host says that it has written so many in all. false: it cannot have. */
bool fanout_host_taken(struct fanout_host *host, uint64_t taken);

/* Is there a chunk that may be sent to it now, and which? `window`: how many may be on the way. */
bool fanout_host_next(const struct fanout_host *host, size_t window, uint64_t *chunk);
void fanout_host_sent(struct fanout_host *host); /* that one was */

/* How many chunks each of so many hosts may have on the way. */
size_t fanout_window(size_t hosts);

#define FANOUT_SLOTS STAGE_CACHE

struct fanout_cache {
    struct fanout_slot {
        uint32_t root;
        uint64_t chunk, used;
        void *block; /* of the caller; NULL: the slot is free */
    } slots[FANOUT_SLOTS];
    uint64_t clock;
};

/* How many chunks to read for a host from fanout_host_next() on: those that it lacks without a gap,
 * that may be sent to it, and that are not in the cache. */
size_t fanout_host_run(const struct fanout_host *host, size_t window,
                       const struct fanout_cache *cache);

void *fanout_cache_get(struct fanout_cache *cache, uint32_t root, uint64_t chunk); /* NULL */
/* Returns the block that it displaces, or NULL. */
void *fanout_cache_put(struct fanout_cache *cache, uint32_t root, uint64_t chunk, void *block);
