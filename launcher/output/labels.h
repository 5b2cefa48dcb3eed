/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of lines on the console: that of one stream, which is cached if it does not have the
 * time, and that of several ranks that have written the same line. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "output/collapse.h"
#include "output/seats.h"
#include "output/types.h"

struct labels {
    struct label *label; /* NULL: none */
    bool timestamp;
    bool timed; /* a label has the time, so it is never the same */
    struct buf scratch;
    const char *text; /* the one that was selected, until the next one is */
    size_t length;
};

/* Whether each line begins with a label. */
bool labels_wanted(const struct output_config *config);

/* An all-zero struct is empty. -1: the template is wrong. */
int labels_init(struct labels *labels, const struct output_config *config, struct error *err);
void labels_clear(struct labels *labels);

void labels_select(struct labels *labels, struct seat_stream *own, bool color);
void labels_select_group(struct labels *labels, const struct seats *seats,
                         const struct collapse_line *line);
