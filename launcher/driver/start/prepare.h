/* SPDX-License-Identifier: Apache-2.0 */
/* PREPARE to the agents: what they have to know before they can start the workers of an epoch. */
#pragma once

#include "driver/start/prepare_epoch.h"

/* To every place of job->plan that it concerns. false: the hosts have no network in common that the
 * user allows, and the job ends. */
bool prepare_send(struct job *job, const struct prepare_epoch *epoch);
