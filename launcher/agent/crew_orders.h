/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's frames about workers. What `body` is, the table of agent/orders.c says.
 */
#pragma once

#include "agent/crews.h"
#include "wire/frame.h"

/* About one worker or one start: for the crew of the header's epoch. */
void crew_orders_start(struct crew *crew, const struct frame_header *header, const void *body);
void crew_orders_stdin(struct crew *crew, const struct frame_header *header, const void *body);
void crew_orders_end_worker(struct crew *crew, const struct frame_header *header, const void *body);
void crew_orders_mpi(struct crew *crew, const struct frame_header *header, const void *body);

/* For all crews, whatever their epoch. */
void crew_orders_signal(struct crews *crews, const struct frame_header *header, const void *body);
void crew_orders_window(struct crews *crews, const struct frame_header *header, const void *body);
