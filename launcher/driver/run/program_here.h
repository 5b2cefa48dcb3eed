/* SPDX-License-Identifier: Apache-2.0 */
/* A program that a host lacks, and this machine has. */
#pragma once

#include "driver/job/job.h"

/* The problem of a host that did not find `program`. If this machine has the program, the text says
 * so, and that each host needs it. `path` is a PATH value, `wdir` the folder of the workers (NULL:
 * ours). The caller's. */
char *program_here_text(const char *problem, const char *program, const char *path,
                        const char *wdir);

/* The same for the program of a rank. Returns the problem alone if the node is this machine or has
 * another problem. */
char *program_here_problem(const struct job *job, const struct node_link *node, int seat,
                           int status, const char *problem);
