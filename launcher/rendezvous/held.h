/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GETs that wait for their key, each with its source and its deadline. Pure.
 *
 * All of them wait equally long, so the order of arrival is the order of the deadlines.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The source of a request: a node of the job and its agent's number for the request. Unique among
 * the requests that are not answered yet. */
struct rendezvous_source {
    uint32_t node;
    uint64_t id;
};

struct rendezvous_held;

struct rendezvous_held *rendezvous_held_create(void);
void rendezvous_held_destroy(struct rendezvous_held *held);

void rendezvous_held_add(struct rendezvous_held *held, const char *scope, const char *key,
                         struct rendezvous_source source, int64_t deadline_ms);
/* The client has gone. False: no request of this source waits here. */
bool rendezvous_held_drop(struct rendezvous_held *held, struct rendezvous_source source);
void rendezvous_held_drop_node(struct rendezvous_held *held, uint32_t node);

/* Each call removes one waiting request and returns its source; false: there is none. */
bool rendezvous_held_take(struct rendezvous_held *held, const char *scope, const char *key,
                          struct rendezvous_source *source);
bool rendezvous_held_take_due(struct rendezvous_held *held, int64_t now_ms,
                              struct rendezvous_source *source);

size_t rendezvous_held_count(const struct rendezvous_held *held);
int64_t rendezvous_held_deadline(const struct rendezvous_held *held); /* the first; -1: none */
