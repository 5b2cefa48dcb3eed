/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the ssh transport: configuration, keys, address, connection, login, agent. The window
 * decides when it may go on (ssh_call_go); the loop drives everything else.
 */
#pragma once

#include "transport/ssh/shared.h"
#include "transport/transport.h"

struct ssh_call;

struct ssh_call *ssh_call_create(struct ssh_shared *shared, const struct transport_target *target,
                                 const struct transport_events *events, void *events_context);
void ssh_call_destroy(struct ssh_call *call);
void ssh_call_go(struct ssh_call *call); /* its turn in the window has come */
