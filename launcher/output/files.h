/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files to which the output of each rank is copied: --output-filename. Pure: names only.
 *
 * A text without % is a folder: FOLDER/rank.NN/stdout and FOLDER/rank.NN/stderr, as horovodrun lays
 * them out, NN as wide as the highest rank ("rank.0" for up to 10 ranks, "rank.00" for up to 100).
 * A text with % is a pattern: %r rank, %h host, %l local rank, %s stream.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "output/label.h"

struct files;

/* `merge`: the stderr of a rank goes to the file of its stdout. */
struct files *files_create(const char *text, int ranks, bool merge, struct error *err);
void files_destroy(struct files *files);

/* Appends the path for this rank and stream. */
void files_path(const struct files *files, const struct label_facts *facts, struct buf *out);

/* Every stream of every rank has a file of its own. */
bool files_distinct(const struct files *files);
