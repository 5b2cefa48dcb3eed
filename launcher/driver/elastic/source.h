/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that an elastic job may use: the named ones (-H, a hostfile) or the discovered ones
 * (driver/elastic/discovery.h), and those that `hvdrun add` adds while the job runs.
 */
#pragma once

#include "driver/elastic/hub.h"

struct elastic_source;

/* NULL: the script cannot be run. */
struct elastic_source *elastic_source_create(struct elastic_hub *hub, struct error *err);
void elastic_source_begin(struct elastic_source *source);
void elastic_source_pause(struct elastic_source *source, bool paused);
void elastic_source_stop(struct elastic_source *source);    /* no more lists */
void elastic_source_destroy(struct elastic_source *source); /* accepts NULL */

/* A host that is already listed gets the new number of slots. */
void elastic_source_add(struct elastic_source *source, const struct host_list *hosts);
