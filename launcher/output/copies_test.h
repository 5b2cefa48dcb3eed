/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of copies alone. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "output/copies.h"
#include "output/label.h"

void files_destroy(struct files *files);

/* Appends the path for this rank and stream. */
void files_path(const struct files *files, const struct label_facts *facts, struct buf *out);

/* Every stream of every rank has a file of its own. */
bool files_distinct(const struct files *files);
