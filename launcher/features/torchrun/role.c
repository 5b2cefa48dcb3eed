/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torchrun/role.h"

enum role role_of(const struct line_nodes *nodes, size_t hosts, bool meets_here)
{
    if (hosts >= (size_t)nodes->max)
        return ROLE_ALONE;
    if (nodes->meeting_host == NULL)
        return hosts >= (size_t)nodes->min ? ROLE_ALONE : ROLE_WRONG;
    if (nodes->is_first >= 0)
        return nodes->is_first > 0 ? ROLE_DRIVER : ROLE_DIAL;
    if (nodes->rank >= 0)
        return nodes->rank == 0 ? ROLE_DRIVER : ROLE_DIAL;
    return meets_here ? ROLE_DRIVER : ROLE_DIAL;
}
