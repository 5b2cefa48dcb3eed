/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The later worlds of a static job: ranks that its MPI ranks spawn while they run (PMIx_Spawn).
 *
 * Each world is an epoch beside those that go on, so agents start it as they start any epoch. Its
 * ranks are ranks of the job: their numbers, which are also their seats, follow the others, and
 * job->plan gets them at its end. MPI counts them from 0, and so do labels: [1.0] is rank 0 of
 * world 1. World 0 has the ranks with which the job began.
 *
 *   IDLE       a request, or the next one                      SENT     (PREPARE sent)
 *              too few slots are free                          IDLE     (refused)
 *              the same, but spawned ranks have some of them   WAITING
 *   WAITING    a rank has exited: as IDLE with the request
 *              it is the one that asks                         IDLE     (dropped)
 *              2 s are over                                    IDLE     (refused)
 *   SENT       every agent is READY                            IDLE     (START sent, answered)
 *              the rank that asks has exited                   IDLE     (CANCEL sent)
 *              an agent has a problem, or --start-timeout      IDLE     (CANCEL sent, refused)
 * MPI disconnects a rank from others a moment before these exit. So a program that uses its slots
 * again and again has to wait. One request after the other: the numbers of the next world follow
 * those of the last one. A request that is refused is an error of MPI for the rank that asked, and
 * ends nothing.
 */
#pragma once

#include "driver/job/job.h"

void worlds_stop(struct job *job); /* it will end: answers nobody any more */

/* A rank has exited: its slot is free, and what it has asked for is dropped. */
void worlds_exited(struct job *job, int seat);
/* This rank has finished. If its world has, all agents forget it: it costs each of them 8 MiB. */
void worlds_finished(struct job *job, int seat);

/* SPAWN; READY of an epoch after the first. -1: the agent broke the protocol. */
int worlds_spawn(struct job *job, struct node_link *node, const struct agent_frame *frame);
int worlds_ready(struct job *job, struct node_link *node, const struct agent_frame *frame);
