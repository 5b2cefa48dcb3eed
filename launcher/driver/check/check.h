/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun check`: a job without workers. All hosts are called as for a job, each agent is asked
 * what it sees, then the agents try to reach each other; what came of it is judged and printed, and
 * the agents are told to quit.
 *
 *   phase     all answered or failed   all listen   all tried       last round   user's end
 *   LOOKING   OPENING                                                            OVER
 *   OPENING                            TRYING                                    OVER
 *   TRYING                                          SENDING, OVER                OVER
 *   SENDING                                                         OVER         OVER
 * Fewer than two hosts have nobody to reach, and LOOKING goes to OVER; SENDING is only there with
 * --net. A host that fails in any phase is named with what it was doing; the others go on. Each
 * phase has a limit of time.
 */
#pragma once

#include "driver/job/job_kind.h"

/* Of job_request. */
struct check_request {
    bool net;  /* measure how fast the hosts send to each other */
    bool json; /* print JSON */
};

extern const struct job_kind check_kind;
