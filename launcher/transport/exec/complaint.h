/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates what ssh, kubectl, srun and other programs print on stderr when they fail: where it
 * failed, why, and what to do. Pure: tables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* The same for what srun and slurmstepd print: cause and remedy, and the line (`room` bytes). NULL:
 * nothing is found. */
const char *srun_complaint_find(const char *text, char *line, size_t room);
