/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the exec transport, without the queue: the command, its stderr, the boot over it.
 *
 *   begin -> the command runs, boot over its stdin and stdout -> up
 *         -> boot fails; if the stream has just ended, the call waits for the command's last words
 *            and its exit status, LAST_WORDS_MS at most -> failed
 */
#pragma once

#include "base/strv.h"
#include "transport/boot/room.h"
#include "transport/transport.h"

struct exec_command { /* what leads to hosts; its parts outlive the calls */
    const struct transport_room *room;
    const struct strv *words; /* of the template */
    const char *boot_word;    /* BOOT_COMMAND; NULL: the command is the agent itself */
    bool same_machine;
    bool is_ssh; /* stderr is that of OpenSSH: its complaints are translated */
};

struct exec_call;

/* `over` comes once when the call is up or has failed, right before that event: its place in the
 * queue is free. */
struct exec_call *exec_call_create(const struct exec_command *command,
                                   const struct transport_target *target,
                                   const struct transport_events *events, void *events_context,
                                   void (*over)(void *entry), void *entry);
void exec_call_begin(struct exec_call *call); /* from the loop: it may fail at once */
void exec_call_destroy(struct exec_call *call);
