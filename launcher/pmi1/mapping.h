/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of PMI_process_mapping, by which MPICH finds out who shares a node with whom:
 * "(vector,(first node,nodes,ranks on each),...)", in the order of the ranks; neighbouring nodes
 * with the same number of ranks in a row are folded into one block. Ranks that go round the nodes
 * give many blocks; where they are too many, the blocks of one round are enough, since MPICH begins
 * with the first one again while ranks are left.
 */
#pragma once

/* `node_of[r]` is the node of rank r. The caller owns the text. NULL when it would be longer than
 * `limit` bytes: MPICH then compares host names. */
char *mapping_text(const int *node_of, int size, int limit);
