/* SPDX-License-Identifier: Apache-2.0 */
/* What an elastic job does with requests over the control socket (driver/control/request.h). */
#pragma once

#include "driver/control/request.h"
#include "driver/elastic/parts.h"

/* Replaces the state, size and hosts of a status by those of the core. */
void elastic_control_status(const struct job *job, json_t *root);

extern const struct control_rule elastic_requests[]; /* drain, undrain and add */
