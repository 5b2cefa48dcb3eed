/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes metrics as text, in one of the two formats that Prometheus and others read: OpenMetrics
 * 1.0, or the older text format 0.0.4, which node_exporter reads too. They differ in the names of
 * families, in the types and in the end. Pure.
 *
 * A name is without the suffix that its type needs (`_total`, `_info`). A unit is the end of the
 * name. All samples of a family come before the next family. Each set of labels comes once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

#define EXPOSITION_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

enum exposition_type { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_INFO };

struct exposition_family {
    const char *name;
    enum exposition_type type;
    const char *unit; /* NULL: none */
    const char *help; /* one line */
};

struct exposition_label {
    const char *name, *value; /* the value may hold anything */
};

struct exposition {
    struct buf *out;
    enum exposition_format format;
    struct exposition_label common;         /* of all samples */
    const struct exposition_family *family; /* that is being written */
};

void exposition_family(struct exposition *exposition, const struct exposition_family *family);
/* Of that family. A value that is not finite is left out. */
void exposition_sample(const struct exposition *exposition, const struct exposition_label *labels,
                       size_t count, double value);
void exposition_end(const struct exposition *exposition);

/* The format for a client that sends this header `Accept`; NULL: none. */
enum exposition_format exposition_format_for(const char *accept);
