/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec transport: a command that gives a duplex pipe to a shell on the host.
 *
 * Its words come from a template (transport/exec/template.h). Calls begin in their order, so many
 * at the same time.
 */
#pragma once

#include "base/strv.h"
#include "transport/boot/boot.h"
#include "transport/exec/template.h"
#include "transport/transport.h"

struct exec_transport {
    const struct transport_room *room;
    struct strv words;     /* the template's */
    const char *boot_word; /* BOOT_COMMAND; NULL: the command is the agent itself */
    int window;            /* calls at the same time; 0: no limit */
    bool same_machine;     /* local_exec */
    bool is_ssh;           /* stderr is that of OpenSSH: its complaints are translated */
    void *state;           /* the queue; private */
};

struct transport exec_transport(struct exec_transport *exec); /* borrows it */
void exec_transport_close(struct exec_transport *exec);       /* after the last hang_up */
