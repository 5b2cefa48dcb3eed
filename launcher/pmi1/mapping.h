/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of PMI_process_mapping, by which MPICH finds out who shares a node with whom:
 * "(vector,(first node,nodes,ranks on each),...)", neighbouring nodes with the same number of ranks
 * folded into one block. Nodes without ranks are skipped but keep their number.
 */
#pragma once

/* `ranks_on[i]` is the number of ranks on node i, ranks being dealt node by node. The caller owns
 * the text. NULL when it would be longer than `limit` bytes: MPICH then compares host names. */
char *mapping_text(const int *ranks_on, int nodes, int limit);
