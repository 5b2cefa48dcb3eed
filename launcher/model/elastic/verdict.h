/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an elastic job: the verdict and its text. After one of these calls the state is
 * ENDING, and the caller does nothing more.
 */
#pragma once

#include "model/elastic/job.h"

/* `failure`: what it is about, or NULL. */
void elastic_verdict_give(struct elastic *e, enum elastic_end end,
                          const struct elastic_failure *failure, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The crash that the verdict is about followed from the loss of a host. */
void elastic_verdict_revise(struct elastic *e, const struct elastic_failure *loss);
void elastic_verdict_success(struct elastic *e);
/* The rank exited with 0, and its host was lost before the driver had all that it wrote. A success
 * of this epoch, given or to come, becomes the loss of the host: output is missing. */
void elastic_verdict_unread(struct elastic *e, int rank, const struct elastic_failure *loss);
void elastic_verdict_driver(struct elastic *e); /* emits no action: the driver asked for it */
/* Too few slots for longer than elastic_timeout. */
void elastic_verdict_no_hosts(struct elastic *e, int wanted, int64_t found);
/* One more epoch would pass the reset limit. */
bool elastic_verdict_at_limit(const struct elastic *e);
/* True: that is so, and the verdict is given. */
bool elastic_verdict_reset_limit(struct elastic *e);
