/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/prepare_epoch.h"

bool prepare_concerns(const struct prepare_epoch *epoch, int place)
{
    if (epoch->world != NULL) /* all nodes know all worlds, as MPI may connect them */
        return true;
    const struct plan_node *node = &epoch->plan->nodes[place];
    if (epoch->members == NULL && node->local_size == 0) /* for worlds that come later */
        return true;
    for (int i = 0; i < node->local_size; i++) {
        if (epoch->members == NULL || epoch->members[node->ranks[i]].is_new)
            return true;
    }
    return false;
}
