/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network part of `hvdrun check`: every host listens on the address that a job would use, the
 * others connect to it (check_plan.h), and with --net they send to each other, round by round, so
 * that no two transfers share a host.
 */
#pragma once

#include "driver/check/result.h"
#include "driver/job/job.h"

struct check_probe;

/* Of all hosts in `result` that have not failed; links, addresses and problems go there. `done`
 * comes once, from the loop, never from within this call, whatever hosts do. */
struct check_probe *check_probe_begin(struct job *job, struct check_result *result, bool net,
                                      void (*done)(void *context), void *context);
void check_probe_destroy(struct check_probe *probe); /* accepts NULL */

/* PROBED. -1: it cannot be read. */
int check_probe_answer(struct check_probe *probe, const struct node_link *node, const uint8_t *body,
                       size_t length);
/* Nothing more will come from it. */
void check_probe_host_failed(struct check_probe *probe, int host);
