/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the rendezvous, fed with the requests that agents pass on as frames (D11). */
#pragma once

#include "driver/job/job.h"

struct rendezvous_part *rendezvous_part_create(struct job *job);
void rendezvous_part_destroy(struct rendezvous_part *part);

/* Of any epoch: a stale request is answered too, since a silent client would wait for ever. -1: the
 * frame cannot be read. */
void rendezvous_part_begin(struct rendezvous_part *part); /* the job's new epoch */

int rendezvous_part_request(struct rendezvous_part *part, const struct node_link *node,
                            uint32_t epoch, const uint8_t *body, size_t length);
int rendezvous_part_dropped(struct rendezvous_part *part, const struct node_link *node,
                            const uint8_t *body, size_t length);
void rendezvous_part_node_lost(struct rendezvous_part *part, const struct node_link *node);
