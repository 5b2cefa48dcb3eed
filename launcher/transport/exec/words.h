/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a command that reaches a host, and what it prints on stderr when it fails. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "transport/transport.h"

/*
 * Templates of commands.
 *
 * A template is first split into words, with quotes and backslashes as in a shell, but nothing is
 * expanded. Then, in each word, %h becomes the host and %n the node's number. %p becomes the port
 * (default: 22), %u the user (default: your own name), and %% a percent sign. A shell never sees it
 * (D14). A last word is appended. If the template does not have %h, the host is appended before
 * that word. The rsh agents of other launchers expect the host there, and so does mpi-operator's
 * kubexec.sh.
 */

#define EXEC_SSH_TEMPLATE                            \
    "ssh -x -T -oBatchMode=yes -oConnectTimeout=10 " \
    "-oStrictHostKeyChecking=accept-new"

/* -1: the template cannot be split, names an unknown %x or nothing at all (STATUS_USAGE). */
int exec_template_parse(const char *text, struct strv *words, struct error *err);

/* The argv for one host; the caller destroys it. `last_word` NULL: nothing is appended. -1: a value
 * is missing or unsafe. */
int exec_template_fill(const struct strv *words, const struct transport_target *target,
                       const char *last_word, struct strv *argv, struct error *err);

/*
 * Translates what ssh, kubectl, srun and other programs print on stderr when they
 * fail: where it failed, why, and what to do.
 */

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
