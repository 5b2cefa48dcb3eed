/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parsers of the schedulers share: allocation.c has the table of them, one file has one
 * scheduler. Pure.
 */
#pragma once

#include "model/allocation/allocation.h"

/* What a parser gets. `file` and `bytes` are NULL where its variables name no file. */
struct allocation_source {
    char *const *env;
    const char *file;
    const char *bytes;
    size_t length;
};

/* The value of a variable; NULL when it is not set or empty. Borrowed. */
const char *allocation_value(char *const *env, const char *name);

/* A variable that holds a whole number from `min` to `max`. 1: `*out` has it; 0: it is not set;
 * -1 and STATUS_USAGE. */
int allocation_number(char *const *env, const char *name, int64_t min, int64_t max, int64_t *out,
                      struct error *err);

/* A slot count in a text that need not end there: 1 to HOSTS_SLOTS_MAX. -1 and STATUS_USAGE. */
int allocation_slots(const char *text, size_t length, int *out, struct error *err);

/* Calls each(context, line, length, err) for every line that is not blank, without the blanks
 * around it; comments (#) are skipped. What it fails with gets "FILE:LINE: 'TEXT': " in front. A
 * NUL byte is an error. */
int allocation_lines(const struct allocation_source *source,
                     int (*each)(void *context, const char *line, size_t length, struct error *err),
                     void *context, struct error *err);

/* A checked name with slots. -1 and STATUS_USAGE: it is no host name. */
int allocation_add(struct allocation *allocation, const char *name, size_t length, int slots,
                   struct error *err);

/* One for each scheduler. `has` looks whether its variables are there and borrows the file that
 * they name. `parse` fills hosts, np and what else is said; the caller checks that there are
 * hosts. */
bool allocation_slurm_has(char *const *env, const char **file);
int allocation_slurm_parse(const struct allocation_source *source, struct allocation *out,
                           struct error *err);
bool allocation_pbs_has(char *const *env, const char **file);
int allocation_pbs_parse(const struct allocation_source *source, struct allocation *out,
                         struct error *err);
bool allocation_lsf_has(char *const *env, const char **file);
int allocation_lsf_parse(const struct allocation_source *source, struct allocation *out,
                         struct error *err);
bool allocation_sge_has(char *const *env, const char **file);
int allocation_sge_parse(const struct allocation_source *source, struct allocation *out,
                         struct error *err);
bool allocation_kubernetes_has(char *const *env, const char **file);
int allocation_kubernetes_parse(const struct allocation_source *source, struct allocation *out,
                                struct error *err);
