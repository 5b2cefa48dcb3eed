/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole command line of another launcher, behind hvdrun's own options: `hvdrun -H a,b torchrun
 * --nproc-per-node 4 train.py`. Its translation is a line of hvdrun. cli/features.def has the
 * launchers.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"

/* On how many hosts the job runs, and where they meet if each of them was given the same line. */
struct line_nodes {
    const char *launcher; /* a constant */
    int min, max;         /* 0: not said */
    bool reserve;         /* an elastic job of that size: further hosts replace lost ones */
    int rank;             /* of this host; -1: not said */
    int is_first;         /* 0 or 1 if the line says whether the others meet here; -1: not said */
    char *meeting_host;   /* owned; NULL: not said */
    int meeting_port;     /* 0: not said */
};

struct line {
    struct strv words; /* options of hvdrun, then "--" and the program */
    struct line_nodes nodes;
    struct strv more; /* after an error: the other mistakes */
};
