/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sink writes to: a descriptor that the caller gave us, or a file by its path. Everything
 * here can block, so only the sink thread calls target_write() and target_end().
 *
 * A file is created (if wanted with its folders) at the first write. At most `open_max` files of a
 * set are open. The one that was used longest ago is closed for a new one, and opened again for
 * appending. A target that has failed drops everything after that.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct output_target {
    struct output_target *newer, *older; /* open files, by last use */
    struct output_target *next;          /* for the sink: all of them */
    struct output_target *next_failed;   /* for the sink */
    char *path;                          /* or the name of the descriptor */
    char *part;                          /* where a file grows that must be whole; NULL */
    int fd;
    int errnum; /* why it has failed; 0: it works */
    bool is_file, append, folders, closed;
    bool in_place; /* if its folder takes no new file */
    void (*failed)(void *context, const char *path, int errnum); /* for the sink; NULL */
    void *failed_context;
    bool reported; /* that it has failed */
    bool wide;     /* a pipe that was enlarged, or cannot be */
};

struct output_target_set {
    struct output_target *newest, *oldest;
    int open, open_max;
    const atomic_bool *give_up; /* seen while waiting: return at once */
};

struct output_target *target_descriptor(int fd, const char *name); /* `fd` is never closed */
/* `folders`: makes the folders of the path that do not exist. */
struct output_target *target_file(const char *path, bool append, bool folders);
/* A new file that only this user may read, as its folders. It grows under another name, and has its
 * own as soon as it is whole. If that fails, nothing of it remains, and `failed` (NULL: none)
 * comes. */
struct output_target *target_whole_file(const char *path,
                                        void (*failed)(void *context, const char *path, int errnum),
                                        void *context);
/* The same with the mode that umask leaves, and in a folder that exists. If that fails, an older
 * file stays as it is. A device, a pipe and a link are written in place. So is a file whose folder
 * takes no new one. */
struct output_target *target_new_file(const char *path);
void target_destroy(struct output_target *target); /* closes nothing: target_end() first */

/* Writes everything; zero bytes only create the file. -1: it has failed, see target->errnum. It
 * returns -1 once, later calls return 0. */
int target_write(struct output_target_set *set, struct output_target *target, const char *bytes,
                 size_t length);

enum target_end {
    TARGET_REST,  /* nothing comes for a while: closes the descriptor; later bytes are appended */
    TARGET_CLOSE, /* for good */
    TARGET_REMOVE /* and unlinks it */
};

/* -1 as above. */
int target_end(struct output_target_set *set, struct output_target *target, enum target_end end);
/* Closes a file that nobody has closed: it may not be whole. */
void target_abandon(struct output_target_set *set, struct output_target *target);
