/* SPDX-License-Identifier: Apache-2.0 */
/* Sends PREPARE to the agents: all that they need before they can start the workers of an epoch. */
#pragma once

#include "driver/start/prepare_epoch.h"

/* Sends it to every place of the plan that is concerned. Returns false when the hosts do not share
 * a network that the user allows. Then the job ends. */
bool prepare_send(struct job *job, const struct prepare_epoch *epoch);
