/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the training example. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct options {
    long epochs;
    long batch; /* images per step, of all ranks together */
    double rate;
    uint64_t seed;
    const char *data; /* NULL: find it; borrowed from argv */
    bool help;
};

/* -1: an option is wrong. All ranks parse; the one with `speak` prints one line to stderr. */
int options_parse(struct options *options, int argc, char **argv, bool speak);
void options_help(void);
