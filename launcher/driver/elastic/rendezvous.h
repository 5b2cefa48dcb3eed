/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elastic part of the rendezvous: passes what its store hears from workers to the parts that
 * want to know it.
 */
#pragma once

#include "driver/elastic/parts.h"

/* `parts` is borrowed for as long as the job has its rendezvous. */
void elastic_rendezvous_begin(struct elastic_parts *parts);

/* The worker of the seat has ended. */
void elastic_rendezvous_rank_gone(const struct elastic_parts *parts, int seat);
