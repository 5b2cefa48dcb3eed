/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of PMI_process_mapping, from which MPICH learns which ranks share a node:
 * "(vector,(first node,nodes,ranks on each),...)", in the order of the ranks. Adjacent nodes with
 * the same number of ranks in a row form one block. Ranks that go round the nodes give many blocks.
 * If these are too many, the blocks of one round are enough: MPICH repeats them for further ranks.
 */
#pragma once

/* `node_of[r]` is the node of rank r. The caller owns the text. NULL when it would be longer than
 * `limit` bytes: MPICH then compares host names. */
char *mapping_text(const int *node_of, int size, int limit);
