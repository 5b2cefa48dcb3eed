/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roots on the driver's machine: makes their lists, and reads the chunks of their streams. It
 * blocks.
 *
 * Every file is read twice: for its hash, without which nobody knows what a host lacks, and to be
 * sent. If it changes after the first time, that is an error. The driver sees it by the stamp, and
 * the agent by the hash.
 */
#pragma once

#include <stdatomic.h>

#include "base/fd.h"
#include "base/strv.h"
#include "features/stage/stage.h"

struct stage_watch {       /* what another thread may do and see meanwhile */
    atomic_bool stop;      /* ends what runs, with an error */
    atomic_llong until_ms; /* of CLOCK_MONOTONIC: after `stop`, what was built may be removed */
    atomic_ulong beat;     /* rises as long as there is progress */
};

/* A beat, and -1 if the work must stop. */
int stage_watch_go_on(struct stage_watch *watch, struct error *err);

struct stage_source {
    char *path; /* owned, without symbolic links */
    char *name; /* owned: of the first record */
    struct stage_list list;
    struct file_stamp *stamps; /* by file of the list */
    int fd;                    /* of the file that was read last; -1: none */
    size_t file;
    struct stage_watch *watch; /* borrowed */
};

/* `named`: clean and absolute, as the user calls it. It is followed if it is a link. */
int stage_source_open(struct stage_source *source, const char *named, struct stage_watch *watch,
                      struct error *err);
void stage_source_close(struct stage_source *source); /* accepts an all-zero struct */

int stage_source_scan(struct stage_source *source, struct error *err);

/* Adds the names in a folder, in their order. -1: those that could be read are there. */
int stage_names_read(const char *path, struct strv *names, struct error *err);

/* `out` has room for stage_chunk_size(). */
int stage_source_read(struct stage_source *source, uint64_t chunk, uint8_t *out, struct error *err);

/* All roots of a job, and their bytes for the hosts. */
struct shared_block; /* io/send_queue.h */

struct stage_root {
    char *named; /* as the user calls it, absolute */
    char *dest;  /* "": none */
    struct stage_source source;
    struct shared_block *list; /* NULL: not listed yet */
};

struct stage_roots {
    struct stage_root *items; /* the caller makes the room */
    size_t count;
    char *wdir; /* owned: where ranks would start without staging */
    struct stage_watch watch;
};

/* `text` is that of --stage, relative to the folder `here`. */
int stage_roots_add(struct stage_roots *roots, const char *text, const char *here,
                    struct error *err);
int stage_roots_list(struct stage_roots *roots, struct error *err);
/* Several: on a busy machine, each turn of this thread and of the loop has to wait. The blocks are
 * the caller's; after -1, some may be missing (NULL). */
int stage_roots_read(struct stage_roots *roots, size_t root, uint64_t chunk,
                     struct shared_block **blocks, size_t count, struct error *err);
void stage_roots_destroy(struct stage_roots *roots);
