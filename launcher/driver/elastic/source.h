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

/* Hosts that nobody listed: the agents that dial in are the list. `max_np`: ranks at most, 0: all
 * slots. -1: the job has as many hosts as it may use, with its spares, or has had
 * ELASTIC_STRANGERS_MAX names in all; `why` is set to a constant. */
#define ELASTIC_STRANGERS_MAX 4096
int elastic_source_come(struct elastic_source *source, const char *name, int max_np,
                        const char **why);
void elastic_source_leave(struct elastic_source *source, const char *name);

/* A host that is already listed gets the new number of slots. */
void elastic_source_add(struct elastic_source *source, const struct host_list *hosts);
