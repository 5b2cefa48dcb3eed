/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates of commands.
 *
 * A template is split into words first (quotes and backslashes as a shell would, nothing expanded),
 * then %h (host), %p (port, 22 when not said), %u (user, your own name when not said), %n (node
 * number) and %% are replaced inside each word; it never meets a shell (D14). A last word is
 * appended. When the template ends without naming %h, the host is appended before that, as to
 * mpi-operator's kubexec.sh and rsh agents of other launchers.
 */
#pragma once

#include "base/strv.h"
#include "transport/transport.h"

#define EXEC_SSH_TEMPLATE                            \
    "ssh -x -T -oBatchMode=yes -oConnectTimeout=10 " \
    "-oStrictHostKeyChecking=accept-new"

/* -1: the template cannot be split, names an unknown %x or nothing at all (STATUS_USAGE). */
int exec_template_parse(const char *text, struct strv *words, struct error *err);

/* The argv for one host; the caller destroys it. `last_word` NULL: nothing is appended. -1: a value
 * is missing or unsafe. */
int exec_template_fill(const struct strv *words, const struct transport_target *target,
                       const char *last_word, struct strv *argv, struct error *err);
