/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a rank says that it is, and the line in which a program says so:
 *
 *   percent [eta-seconds] [text]          42.5 360 epoch 3 of 7, loss 0.41
 *
 * The percent may have a '%' behind it. "-" instead of the seconds means that they are not known.
 * If a word that is not a number is in their place, they are not known either, and the text begins
 * with that word. The last of several lines counts, so a program may overwrite its file or append
 * to it. Pure.
 *
 * Workers are not trusted: numbers outside of their range and rubbish are errors, texts are cut to
 * their limits, and all texts become plain UTF-8 on one line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PROGRESS_LINE_MAX 1024 /* bytes at the end of a file that are read */
#define PROGRESS_TEXT_MAX 200
#define PROGRESS_METRICS_MAX 32
#define PROGRESS_NAME_MAX 64   /* of a metric */
#define PROGRESS_VALUE_MAX 32  /* of a metric, as text */
#define PROGRESS_ETA_MAX_S 1e9 /* 31 years */

/* A number that a program reports beside its progress, such as the loss. */
struct progress_metric {
    char name[PROGRESS_NAME_MAX + 1];
    char value[PROGRESS_VALUE_MAX + 1]; /* as strtod() reads it; "nan" and "inf" too */
};

struct progress {
    double percent;                  /* 0 to 100; -1: not said */
    double eta_s;                    /* until the end, at the time of the report; -1: not said */
    char *text;                      /* owned; NULL: none */
    struct progress_metric *metrics; /* owned; NULL: none */
    size_t metric_count;
};

#define PROGRESS_INIT              \
    {                              \
        .percent = -1, .eta_s = -1 \
    }
#define AUTO_PROGRESS __attribute__((cleanup(progress_clear)))

void progress_clear(struct progress *progress);
void progress_move(struct progress *to, struct progress *from); /* `from` is empty then */

/* Reads the last line of `bytes`, the end of a file. `whole`: a line counts even without its
 * newline, because nobody is writing. `out` is empty before. -1: there is no line, or it is wrong.
 */
int progress_parse(const char *bytes, size_t length, bool whole, struct progress *out,
                   struct error *err);

/* For numbers that came by another way. -1: out of range; `progress` does not change. */
int progress_set_percent(struct progress *progress, double percent, struct error *err);
int progress_set_eta(struct progress *progress, double seconds, struct error *err);
void progress_set_text(struct progress *progress, const char *text, size_t length);
/* false: there are too many, or the name or the value is not valid. Replaces a metric of the same
 * name. */
bool progress_add_metric(struct progress *progress, const char *name, const char *value);

/* NULL: there is no metric of this name. */
const char *progress_metric(const struct progress *progress, const char *name);
