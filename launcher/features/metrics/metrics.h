/* SPDX-License-Identifier: Apache-2.0 */
/* What the metrics and the status page are made of. All but the page is pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * exposition.c: writes metrics as text, in one of the two formats that Prometheus and others read:
 * OpenMetrics 1.0, or the older text format 0.0.4, which node_exporter reads too. They differ in
 * the names of families, in the types and in the end.
 *
 * A name is without the suffix that its type needs (`_total`, `_info`). A unit is the end of the
 * name. All samples of a family come before the next family. Each set of labels comes once.
 */

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

/*
 * history.c: what a job used, and how far it was, over the last hour: a ring of points, each about
 * the whole job. Times come from outside.
 *
 * For HISTORY_DENSE_SPAN_MS the points are HISTORY_DENSE_MS apart, so that a short job has curves
 * too, and then HISTORY_PERIOD_MS. Each point has a number, so that a reader can ask for what has
 * come since.
 */

#define HISTORY_SPAN_MS (3600 * 1000)
#define HISTORY_DENSE_SPAN_MS (120 * 1000)
#define HISTORY_DENSE_MS 2000
#define HISTORY_PERIOD_MS 5000
#define HISTORY_GAP_MS (3 * HISTORY_PERIOD_MS) /* more than this between two points is a gap */
#define HISTORY_POINTS 800                     /* at most, 50 KB; 756 are an hour */

struct history_point {
    int64_t when_ms; /* monotonic */
    /* NAN: not known */
    double progress; /* from 0 to 1 */
    double cpus;     /* in use; 1 is one CPU */
    double resident_bytes;
    double gpu_use_percent; /* the mean */
    double gpu_memory_bytes;
    int ranks;      /* that run */
    bool after_gap; /* set by the history: nothing is known of the time before */
};

struct history {                                 /* all zero: empty */
    struct history_point points[HISTORY_POINTS]; /* a ring: by the number of the point */
    uint64_t first, next; /* numbers: the first one that is kept, and the one to come */
    int64_t begun_ms;     /* the time of the very first point */
};

/* A point that is not later than the last one is ignored. Points that are HISTORY_SPAN_MS older
 * than this one are forgotten. */
void history_add(struct history *history, const struct history_point *point);

/* After this time comes the next point. */
int64_t history_wait_ms(const struct history *history);

/* Borrowed until the next call of history_add(). NULL: there is no point of this number any more,
 * or not yet. */
const struct history_point *history_point(const struct history *history, uint64_t number);

/*
 * page.c: the document of the status page: HTML with its style and script inside, from page/. The
 * build embeds these files. A browser runs this script under a policy (Content-Security-Policy),
 * and no other one.
 */

#define PAGE_TEXT_MAX ((size_t)1 << 20)
#define PAGE_POLICY_MAX ((size_t)1024)

/* The document that a server sends, and its policy. -1: there is no randomness. */
int page_text(struct buf *document, struct buf *policy);

/* The document for a file, with its policy and what it shows inside: JSON (metrics_driver.h). -1:
 * likewise, or the limit of `document`. */
int page_kept_text(const struct buf *json, struct buf *document);

/* 128 random bits as hexadecimal digits, for tokens. */
#define RANDOM_TEXT_ROOM 33
int random_text(char out[RANDOM_TEXT_ROOM]); /* -1: the kernel has no randomness yet */
