/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts of an elastic job are called, and what becomes of the calls and links.
 */
#pragma once

#include "model/elastic/job.h"

/* Calls hosts up to the slots that are wanted. */
void elastic_calls_make(struct elastic *e);
void elastic_calls_came(struct elastic *e, int number, const char *boot_id);
void elastic_calls_unreached(struct elastic *e, int number, const char *text);

/* Its workers are gone. `since_ms`: when it was last heard. */
void elastic_calls_lost(struct elastic *e, int number, const char *text, int64_t since_ms);
/* The same for a host whose agent does not do what it should. */
void elastic_calls_give_up(struct elastic *e, int number, const char *text);

void elastic_calls_prepare_failed(struct elastic *e, int number, const char *text, int code);
/* Retries, cool-downs and drain deadlines that are due. */
void elastic_calls_due(struct elastic *e);
