/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole command line of another launcher, behind hvdrun's own options: `hvdrun -H a,b torchrun
 * --nproc-per-node 4 train.py`. Its translation is a line of hvdrun. cli/features.def has the
 * launchers.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

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
    char *meeting_id;     /* owned; NULL: not said */
    int join_seconds;     /* how long they wait for each other; 0: not said */
    int last_call_ms;     /* how long the first MIN hosts wait for more; 0: not said */
    int slots;            /* of this host, if it is one of several copies */
    char *copy;           /* owned; what all copies should say; NULL: it is not one of several */
};

struct line {
    struct strv words; /* options of hvdrun, then "--" and the program; after an error, the line
                          without the options that hvdrun cannot honour, if all others are right */
    struct line_nodes nodes;
    char *own_address; /* owned; MASTER_ADDR, if host 0 is this machine; NULL: not said */
    char *help;        /* owned; what --help prints; NULL: the line does not ask for it */
    struct strv warnings;
    struct strv more;    /* after an error: the other mistakes */
    struct strv unknown; /* after an error: options that the launcher does not have */
};

/* Keeps the nodes. */
static inline void line_destroy(struct line *line)
{
    strv_destroy(&line->words);
    strv_destroy(&line->warnings);
    strv_destroy(&line->more);
    strv_destroy(&line->unknown);
    free(line->own_address);
    free(line->help);
}
