/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts of an elastic job that leave it: drained, unlisted, or listed with fewer slots.
 */
#pragma once

#include "model/elastic/job.h"

/* Lets go the draining hosts that no longer have a worker. */
void elastic_departures_finish(struct elastic *e);

void elastic_departures_drain(struct elastic *e, int number, const char *text, int64_t deadline_ms);
void elastic_departures_undrain(struct elastic *e, int number);
/* Its deadline has passed: kills the workers that are still there. Otherwise they would hold up the
 * others when the machine goes. */
void elastic_departures_expire(struct elastic *e, int number);

/* Applies the list of the hosts that the job has now: new hosts, other slots. Hosts that are no
 * longer on it drain. */
void elastic_listing_take(struct elastic *e, const struct host_list *list);
