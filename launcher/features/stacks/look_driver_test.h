/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of look need, and nobody else. */
#pragma once

#include "base/buf.h"
#include "features/stacks/look_driver.h"

#define RANK_STATES_LINES 40

struct rank_states;
struct rank_states *rank_states_create(void);
void rank_states_destroy(struct rank_states *states); /* accepts NULL */

/* In any order. The texts are copied. `text` can have several lines. */
void rank_states_add(struct rank_states *states, int rank, const char *host, const char *text);

/* Appends lines that begin with "hvdrun: " or with four spaces; nothing without ranks. */
void rank_states_text(struct rank_states *states, struct buf *out);
