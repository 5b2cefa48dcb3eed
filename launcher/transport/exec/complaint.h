/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates what ssh, kubectl, srun and other programs print on stderr when they fail: where it
 * failed, why, and what to do. Pure: tables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "transport/transport.h"

#define EXEC_COMPLAINT_LINE 240

struct exec_complaint {
    enum transport_stage stage;
    const char *why;                /* cause and remedy; static */
    char line[EXEC_COMPLAINT_LINE]; /* the line that said it */
};

/* The first entry of the table that is found in `text`, whose lines are printable. `is_ssh`: those
 * of OpenSSH too. false: nothing is. */
bool exec_complaint_find(const char *text, bool is_ssh, struct exec_complaint *out);

/* What srun, slurmstepd and an agent that cannot dial back print: which nodes it is about, and what
 * it means. */

/* "srun: error: node[2-3]: tasks 1-2: Exited with exit code 2", "srun: error: Node failure on
 * node3", "... failed on node node3: ...", DIAL_BACK_CANNOT "node3: why": appends the nodes to
 * `nodes` and returns what is said about them, a part of `line`. NULL: it names none. */
const char *srun_complaint_about(const char *line, struct strv *nodes);

/* `said` means that Slurm has taken the node from the job. */
bool srun_complaint_is_node_failure(const char *said);

/* The agents of this step end on request: a cancelled step or job, a signal to srun. */
bool srun_complaint_is_end(const char *line);

/* Cause and remedy of the first line in `text` that is known, and the line itself (`room` bytes).
 * NULL: none is. */
const char *srun_complaint_find(const char *text, char *line, size_t room);
