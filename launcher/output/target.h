/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where bytes end: a descriptor that somebody gave us, or a file by its path. Everything here may
 * block, so only the sink thread calls target_write() and target_close().
 *
 * A file is made (with its folders) when it is written first. At most `open_max` files of a set are
 * open; the one that was used longest ago is closed for a new one and opened again for appending. A
 * target that has failed swallows everything after that.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct target {
    struct target *newer, *older; /* open files, by last use */
    struct target *next;          /* for the sink: all of them */
    struct target *next_failed;   /* for the sink */
    char *path;                   /* or the name of the descriptor */
    int fd;
    int errnum; /* why it has failed; 0: it works */
    bool is_file, append, closed;
    bool told; /* that it has failed */
    bool wide; /* a pipe: was made to hold more, or cannot be */
};

struct target_set {
    struct target *newest, *oldest;
    int open, open_max;
    const atomic_bool *give_up; /* seen while waiting: return at once */
};

struct target *target_descriptor(int fd, const char *name); /* `fd` is never closed */
struct target *target_file(const char *path, bool append);
void target_destroy(struct target *target); /* closes nothing: target_close() first */

/* Writes everything; zero bytes only make the file. -1: it has failed, see target->errnum; this is
 * said once, later calls return 0. */
int target_write(struct target_set *set, struct target *target, const char *bytes, size_t length);

/* Nothing comes for a while: its descriptor is given back, later bytes go on behind what is there.
 * -1 as above. */
int target_rest(struct target_set *set, struct target *target);

/* A file is closed for good. -1 as above. */
int target_close(struct target_set *set, struct target *target);
