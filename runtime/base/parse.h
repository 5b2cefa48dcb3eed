/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded parsers for short values that people type: numbers, durations, sizes. The whole string
 * must be the value. On failure they fill `err` with the value and what they expected, return -1,
 * and do not change `*out`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

int parse_int(const char *text, int64_t min, int64_t max, int64_t *out, struct error *err);
int parse_double(const char *text, double min, double max, double *out, struct error *err);
int parse_bool(const char *text, bool *out, struct error *err); /* 1/0 yes/no true/false on/off */

/* "30", "1.5" (seconds), "250ms", "30s", "5m", "2h", "1d". `*out` is in milliseconds, never < 0. */
int parse_duration_ms(const char *text, int64_t *out, struct error *err);

/* Seconds since 1970: "2026-11-27", "2026-11-27T10:33Z", "2026-11-27T10:33:05Z". No error text. */
int parse_utc(const char *text, int64_t *out);
#define UTC_TEXT_SIZE 24
void utc_text(int64_t when_s, char out[UTC_TEXT_SIZE]); /* the longest form */

/* A list of ranks from 0 to `max`: "0,4-7,12". Calls `each` for each rank, in the order of the
 * list; NULL: it only checks the list. */
int parse_ranks(const char *text, int64_t max, void (*each)(void *context, int64_t rank),
                void *context, struct error *err);

/* D14: host and user names are data: [A-Za-z0-9._:%-]+, not '-' first, at most 255 bytes. */
bool name_is_safe(const char *name, size_t length);
