/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of NCCL's RAS to STATUS, in JSON. Pure. The answer comes from a process of the user,
 * so nothing in it is taken for granted.
 *
 * NCCL 2.28.7 and 2.28.9 leave out a comma if a rank is missing, and that is just when the answer
 * is needed. So missing commas are put in first. NCCL before 2.28.7 has no JSON.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "features/hang/ras.h"

#define RAS_JSON_MAX ((size_t)16 << 20)
#define RAS_ENTRIES_MAX 65536

struct ras_entry {
    struct ras_place place;
    char host[64]; /* its address; "" if it is longer */
    int64_t pid;   /* in the PID namespace of the rank */
};

struct ras_report {
    struct ras_entry *entries; /* of ranks that have answered, at most RAS_ENTRIES_MAX */
    size_t count;
};

/* `text` begins with the lines that come before the JSON, if there are any. -1: it is no such
 * answer. */
int ras_json_read(const char *text, size_t length, struct ras_report *out, struct error *err);
void ras_report_clear(struct ras_report *report);
