/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks are doing when a time limit has passed, as text for the user. Pure.
 *
 * Ranks that do the same are shown together, by the one with the lowest number. The same: their
 * processes have equal names, states, calls and stacks; only the pids may differ. The groups come
 * in the order of their first ranks. The text is bounded: groups that would make it longer than
 * RANK_STATES_LINES are only named.
 */
#pragma once

#include "base/buf.h"

#define RANK_STATES_LINES 40

struct rank_states;

struct rank_states *rank_states_create(void);
void rank_states_destroy(struct rank_states *states); /* accepts NULL */

/* In any order. The texts are copied. `text` can have several lines. */
void rank_states_add(struct rank_states *states, int rank, const char *host, const char *text);

/* Appends lines that begin with "hvdrun: " or with four spaces; nothing without ranks. */
void rank_states_text(struct rank_states *states, struct buf *out);
