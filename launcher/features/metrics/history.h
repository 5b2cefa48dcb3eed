/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job used, and how far it was, over the last hour: a ring of points, each about the whole
 * job. Pure; times come from outside.
 *
 * For HISTORY_DENSE_SPAN_MS the points are HISTORY_DENSE_MS apart, so that a short job has curves
 * too, and then HISTORY_PERIOD_MS. Each point has a number, so that a reader can ask for what has
 * come since.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

struct history;

struct history *history_create(void);
void history_destroy(struct history *history); /* accepts NULL */

/* A point that is not later than the last one is ignored. Points that are HISTORY_SPAN_MS older
 * than this one are forgotten. */
void history_add(struct history *history, const struct history_point *point);

/* After this time comes the next point. */
int64_t history_wait_ms(const struct history *history);

/* The numbers of the points: from the first one that is kept up to the next one, which is not there
 * yet. They are equal if there are none. */
uint64_t history_first(const struct history *history);
uint64_t history_next(const struct history *history);

/* Borrowed until the next call of history_add(). NULL: there is no point of this number any more,
 * or not yet. */
const struct history_point *history_point(const struct history *history, uint64_t number);
