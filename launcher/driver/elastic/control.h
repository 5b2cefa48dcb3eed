/* SPDX-License-Identifier: Apache-2.0 */
/* What an elastic job does with requests over the control socket (driver/control/request.h). */
#pragma once

#include "driver/elastic/parts.h"

struct json_t;

/* Replaces the state, size and hosts of a status by those of the core. */
void elastic_control_status(const struct elastic_parts *parts, struct json_t *root);

/* -1: the job does not know the host. */
int elastic_control_drain(const struct elastic_parts *parts, const char *name, bool has_deadline,
                          int64_t within_ms, struct error *err);
int elastic_control_undrain(const struct elastic_parts *parts, const char *name, struct error *err);
