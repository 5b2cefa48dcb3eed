/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What starts the processes of workers in another way than by fork and exec. A part of the agent
 * offers it to a crew (crew_config.h).
 */
#pragma once

#include "io/child.h"

struct spawner {
    void *own;
    /* Takes a worker: `done` comes once, later, from the loop. It has the pid of a child of this
     * process that is as child_spawn() would have made it; or -1 and an error of child_spawn().
     * `spec` is copied, its descriptors too. False: start it in the usual way. */
    bool (*spawn)(void *own, const struct child_spec *spec,
                  void (*done)(void *context, pid_t pid, const struct error *err), void *context);
    /* The worker with this context is not wanted any more: `done` does not come, and no process
     * of it runs the user's program. */
    void (*cancel)(void *own, const void *context);
};
