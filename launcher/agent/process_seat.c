/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process_seat.h"

#include "node/usage.h"

#define DEPTH_MAX 64 /* of a worker's tree of processes */

/* A worker leads a session of its own, under its pid. */
bool process_seat(const struct crews *crews, pid_t pid, struct buf *scratch, uint32_t *seat)
{
    struct process_usage found;
    for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
        if (crews_seat_of(crews, pid, seat))
            return true;
        if (!process_usage_read(pid, scratch, &found))
            return false;
        if (crews_seat_of(crews, (pid_t)found.stat.session, seat))
            return true;
        pid = (pid_t)found.stat.parent;
    }
    return false;
}
