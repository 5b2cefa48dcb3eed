/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the hosts of an elastic job come from: those that were named (-H, a hostfile) or are found
 * (driver/elastic/discovery.h), and those that were added while it runs (`hvdrun add`).
 */
#pragma once

#include "driver/elastic/hub.h"

struct elastic_source;

/* NULL: the script cannot be run. */
struct elastic_source *elastic_source_create(struct elastic_hub *hub, struct error *err);
void elastic_source_begin(struct elastic_source *source);
void elastic_source_pause(struct elastic_source *source, bool paused);
void elastic_source_stop(struct elastic_source *source);    /* no list any more */
void elastic_source_destroy(struct elastic_source *source); /* accepts NULL */

/* The slots of a host that is there already are replaced. */
void elastic_source_add(struct elastic_source *source, const struct host_list *hosts);
