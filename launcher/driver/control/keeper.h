/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the folder of the control socket when the driver has died without doing so itself
 * (SIGKILL): where an agent of this host lives on for a moment its own sweep would do that, but an
 * elastic job may have no agent here.
 *
 * It is a child of the driver that waits for the end of a pipe and then sweeps, and does nothing
 * else: in a session of its own, with no other descriptor, deaf to all signals but SIGKILL. It is
 * there before the folder is. When it is killed itself, the driver still removes its folder.
 */
#pragma once

#include "io/helpers.h"

struct control_keeper;

/* One of `helpers`, so that a sweep spares it. NULL: it cannot be started; the job goes on without.
 */
struct control_keeper *control_keeper_create(struct helpers *helpers);
void control_keeper_destroy(struct control_keeper *keeper); /* the folder is gone; accepts NULL */
