/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the folder of the control socket if SIGKILL killed the driver. An agent on the driver's
 * host would do that too when it ends, but an elastic job may have no agent there.
 *
 * The keeper is a child of the driver, started before the folder exists. It waits for the end of a
 * pipe, then sweeps. It has a session of its own and no other descriptor, and ignores all signals
 * but SIGKILL. If the keeper itself is killed, the driver still removes its folder.
 */
#pragma once

#include "io/helpers.h"

struct control_keeper;

/* The keeper is one of `helpers`, so that a sweep spares it. NULL: it cannot be started; the job
 * can run without it. */
struct control_keeper *control_keeper_create(struct helpers *helpers);
void control_keeper_destroy(struct control_keeper *keeper); /* the folder is gone; accepts NULL */
