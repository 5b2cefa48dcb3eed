/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec transport: a command that gives a duplex pipe to a shell on the host.
 *
 * A template is split into words first (quotes and backslashes as a shell would, nothing expanded),
 * then %h (host), %p (port, 22 when not said), %u (user, the own name when not said), %n (node
 * number) and %% are replaced inside each word; it never meets a shell (D14). BOOT_COMMAND is
 * appended as the last word. When the template ends without naming %h, the host is appended before
 * that, as to mpi-operator's kubexec.sh and rsh agents of other launchers.
 */
#pragma once

#include "base/strv.h"
#include "io/helpers.h"
#include "transport/boot/boot.h"

/* Shared by all transports of a driver; outlives their calls. */
struct transport_room {
    struct loop *loop;
    struct helpers *helpers;
    struct agent_image *image;
    const char *job_id;
    int64_t limit_ms;   /* for one stage of one call */
    int64_t silence_ms; /* after which the job gives a node up, for TCP_USER_TIMEOUT */
};

#define EXEC_SSH_TEMPLATE                            \
    "ssh -x -T -oBatchMode=yes -oConnectTimeout=10 " \
    "-oStrictHostKeyChecking=accept-new"

struct exec_transport {
    const struct transport_room *room;
    struct strv words;     /* the template's */
    const char *boot_word; /* BOOT_COMMAND; NULL: the command is the agent itself */
    int window;            /* calls at the same time; 0: no limit */
    bool same_machine;     /* local_exec */
    bool is_ssh;           /* stderr is that of OpenSSH: its complaints are translated */
    void *state;           /* the queue; private */
};

/* -1: the template cannot be split, names an unknown %x or nothing at all (STATUS_USAGE). */
int exec_template_parse(const char *text, struct strv *words, struct error *err);

/* The argv for one host; the caller destroys it. -1: a value is missing or unsafe. */
int exec_template_fill(const struct strv *words, const struct transport_target *target,
                       const char *last_word, struct strv *argv, struct error *err);

struct transport exec_transport(struct exec_transport *exec); /* borrows it */
void exec_transport_close(struct exec_transport *exec);       /* after the last hang_up */
