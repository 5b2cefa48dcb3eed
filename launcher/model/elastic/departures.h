/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How hosts of an elastic job are left: drained, unlisted, with fewer slots.
 */
#pragma once

#include "model/elastic/job.h"

/* It is up and is to be left: LEAVING. `text`, with its name, says why. */
void elastic_departures_begin(struct elastic *e, int number, const char *text);
/* Its upper slots are to be left. */
void elastic_departures_shrink(struct elastic *e, int number, const char *text);
/* Lets go the hosts that are left and have no worker any more. */
void elastic_departures_finish(struct elastic *e);

void elastic_departures_drain(struct elastic *e, int number, const char *text, int64_t deadline_ms);
void elastic_departures_undrain(struct elastic *e, int number);
/* Its deadline has passed: whoever has not left it by now is ended, so that nobody holds up the
 * others when the machine goes. */
void elastic_departures_expire(struct elastic *e, int number);
