/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the hosts that an elastic job has now, against the one before.
 */
#pragma once

#include "model/elastic/job.h"

/* Applies the list: new hosts, other slots. Hosts that are no longer on it drain. */
void elastic_listing_take(struct elastic *e, const struct host_list *list);
