/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of an elastic job to its hosts: which hosts to call, and hosts that come, cannot
 * be reached or are lost.
 */
#pragma once

#include "model/elastic/job.h"

/* Calls hosts until they promise as many slots as the job can use. */
void elastic_calls_make(struct elastic *e);
int64_t elastic_calls_promised(const struct elastic *e); /* slots */
void elastic_calls_came(struct elastic *e, int number, const char *boot_id);
void elastic_calls_unreached(struct elastic *e, int number, const char *text);

/* Its workers are gone too. `since_ms`: when the host was last heard. */
/* `explains`: the crash that is the cause of the change followed from it. */
void elastic_calls_lost(struct elastic *e, int number, const char *text, int64_t since_ms,
                        bool explains);
/* The same for a host whose agent does not do what it should. */
void elastic_calls_give_up(struct elastic *e, int number, const char *text);

/* A worker there is to blame for a hang. */
void elastic_calls_count_hang(struct elastic *e, int number);

/* A process of the job stays there for ever. The host gets onto the blacklist, unless the others do
 * not have min_np slots. */
void elastic_calls_unkilled(struct elastic *e, int number, const char *text);

void elastic_calls_prepare_failed(struct elastic *e, int number, const char *text, int code);
/* Retries, cool-downs and drain deadlines that are due. */
void elastic_calls_due(struct elastic *e);
