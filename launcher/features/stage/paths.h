/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths that change when files are staged: what a job names below a root becomes the same below the
 * copy. And where symbolic links lead. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "features/stage/list.h"

struct stage_move {   /* one of the names of a root, and its copy */
    const char *from; /* absolute, without "." and ".." */
    const char *to;
    const struct stage_list *list; /* what it has */
};

/* `path` below `folder`, or itself if it is absolute; without ".", ".." and double slashes, as if
 * no part of it were a symbolic link. The caller frees it. */
char *stage_path_clean(const char *folder, const char *path);

/* Is `path` `folder`, or below it? Then this is the rest, "" or "/...". NULL: no. */
const char *stage_path_below(const char *path, const char *folder);

/* The new path of one that a root has (of several, the innermost), relative to `folder`. What
 * comes behind the name of the root stays byte for byte. NULL: it stays. The caller frees it. */
char *stage_move_path(const struct stage_move *moves, size_t count, const char *folder,
                      const char *path);

/* A word of a command line, which is a path if it has a slash. A name alone may be any word, so it
 * moves only if a root of that name is a file. NULL: it stays. `folder`: where the command starts.
 */
char *stage_move_word(const struct stage_move *moves, size_t count, const char *folder,
                      const char *word);

/* "NAME=value" of the environment. The variables are those that have a path, or several with colons
 * between them. NULL: it stays. */
char *stage_move_variable(const struct stage_move *moves, size_t count, const char *pair);

/* The text that a link has in the copy. `root` and `folder`, which has the link, are absolute and
 * without symbolic links. `target` is the text of the link. A target in the root becomes relative,
 * one outside becomes absolute. The caller frees it. */
char *stage_link_target(const char *root, const char *folder, const char *target);

struct stage_root_words { /* of --stage PATH[:DEST] */
    char *path, *dest;    /* dest NULL: none. The caller frees both. */
};

/* The last colon counts; "\:" is one of the name. -1: a part is empty. */
int stage_root_parse(const char *text, struct stage_root_words *out, struct error *err);
