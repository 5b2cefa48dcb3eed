/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an elastic job ends: the verdict, its words, and the end of all decisions. After one of these
 * the state is ENDING, and the caller does nothing more.
 */
#pragma once

#include "model/elastic/job.h"

/* `failure`: whom it is about, or NULL. */
void elastic_verdict_give(struct elastic *e, enum elastic_end end,
                          const struct elastic_failure *failure, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void elastic_verdict_success(struct elastic *e);
void elastic_verdict_driver(struct elastic *e); /* no action: the driver knows */
/* Too few slots for longer than elastic_timeout. */
void elastic_verdict_no_hosts(struct elastic *e, int wanted, int64_t found);
/* True: one more epoch would pass the reset limit, and the verdict is given. */
bool elastic_verdict_reset_limit(struct elastic *e);
