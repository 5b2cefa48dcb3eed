/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun check`: a job without workers. It calls all hosts as a job does, asks each agent for the
 * facts of its host, and lets the agents connect to each other. Then it judges and prints the
 * results, and the agents quit.
 *
 *   phase     all answered or failed   all listen   all tried       last round   user's end
 *   LOOKING   OPENING                                                            OVER
 *   OPENING                            TRYING                                    OVER
 *   TRYING                                          SENDING, OVER                OVER
 *   SENDING                                                         OVER         OVER
 * With fewer than two hosts there are no connections to try, and LOOKING goes to OVER. SENDING
 * happens only with --net. A host that fails in any phase is reported with its stage; the others go
 * on. Each phase has a time limit.
 */
#pragma once

struct job_kind;

extern const struct job_kind check_kind;
