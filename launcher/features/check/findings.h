/* SPDX-License-Identifier: Apache-2.0 */
/* The problems and warnings of `hvdrun check`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct check_finding {
    int host;   /* -1: all of them */
    bool fatal; /* a job would not run; else a warning */
    char *text; /* cause and remedy, without the host's name */
};

struct check_findings {
    struct check_finding *items;
    size_t count;
};

void check_findings_add(struct check_findings *findings, int host, bool fatal, const char *format,
                        ...) __attribute__((format(printf, 4, 5)));
void check_findings_clear(struct check_findings *findings);

/* Fatal findings first; otherwise in the order in which they were added. */
void check_findings_sort(struct check_findings *findings);

size_t check_findings_count(const struct check_findings *findings, bool fatal);
bool check_findings_has(const struct check_findings *findings, int host, bool fatal); /* exactly */
