/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hang in an elastic job, with --on-hang restart. The host of the culprit counts a failure, as if
 * it had been lost, and may get onto the blacklist by that. It stays off the blacklist if the other
 * hosts do not have min_np slots. If the workers can rejoin, the culprit is killed, and a worker
 * takes its place. Otherwise, or if there is no culprit, all workers restart.
 */
#pragma once

#include "model/elastic/job.h"

/* `seat`: of the culprit; -1, or none of a member: nobody is to blame. */
void elastic_hung(struct elastic *e, int seat);
