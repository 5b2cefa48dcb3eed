/* SPDX-License-Identifier: Apache-2.0 */
/* Marks ranks that are far behind the others (model/usage/straggler.h): a line, an event, and a
 * flag in the record of the rank, which `status` and `top` show. */
#pragma once

#include "driver/job/job.h"

struct straggler_watch;

struct straggler_watch *straggler_watch_create(struct job *job); /* NULL: nobody wants to know */
void straggler_watch_destroy(struct straggler_watch *watch);     /* accepts NULL */
