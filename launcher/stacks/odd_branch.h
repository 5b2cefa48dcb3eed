/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The branch of a stack tree in which a few ranks are, while most are in another one. Pure. It
 * looks at main threads, and at the first place where these part. A few: one rank, or a quarter at
 * most.
 */
#pragma once

#include "stacks/tree.h"

/* Appends "rank 2 is elsewhere: in a.py:7 load; 3 others are in a.py:9 step". Nothing: no rank
 * stands out. */
void odd_branch_text(struct stack_tree *tree, struct buf *out);
