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

#include "driver/job/job.h"

struct check_part;

/* Of job_request. */
struct check_request {
    bool net;  /* measure how fast the hosts send to each other */
    bool json; /* print JSON */
};

struct check_part *check_part_create(struct job *job);
void check_part_destroy(struct check_part *part); /* accepts NULL */
void check_part_begin(struct check_part *part);

/* News of a node. */
void check_part_hello(struct check_part *part, struct node_link *node);
void check_part_unreached(struct check_part *part, const struct node_link *node, const char *why);
void check_part_lost(struct check_part *part, const struct node_link *node, const char *why);
void check_part_note(struct check_part *part, const struct node_link *node, const char *line);
/* CHECKED, PROBED. -1: the agent broke the protocol, or nobody has asked (`part` is NULL). */
int check_part_frame(struct check_part *part, struct node_link *node, uint8_t type,
                     const uint8_t *body, size_t length);

/* When all is over: the verdict, and what is printed to standard output. */
void check_part_verdict(struct check_part *part, struct verdict *verdict);
void check_part_report(const struct check_part *part);
