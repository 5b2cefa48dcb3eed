/* SPDX-License-Identifier: Apache-2.0 */
/* One host by the `ssh` program, through the exec transport: for what libssh2 cannot do. */
#pragma once

#include "transport/exec/exec.h"
#include "transport/ssh/program.h"

struct ssh_fallback;

/* All is borrowed until destroy but `program`. NULL: `err` says why. The events are those of a
 * transport's call. */
struct ssh_fallback *ssh_fallback_start(const struct transport_room *room,
                                        const struct ssh_program *program,
                                        const struct transport_target *target,
                                        const struct transport_events *events, void *events_context,
                                        struct error *err);
void ssh_fallback_destroy(struct ssh_fallback *fallback); /* hangs up; accepts NULL */
