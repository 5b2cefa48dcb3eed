/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running job: `hvdrun status`, `drain` and `add` talk to it
 * (driver/control/request.h says in which words).
 *
 * It is a Unix socket of mode 0600 in a runtime folder of the driver's own (node/runtime_dir.h: a
 * folder of this user alone, locked while the driver lives, swept by the next start when it has
 * died). It is named by the job's id, JOB.control. Who connects must be this user or root. Requests
 * of one connection are answered in turn; beyond CONTROL_PEERS_MAX connections the next one waits
 * until one has gone.
 */
#pragma once

#include <sys/un.h>

#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_SUFFIX ".control"
#define CONTROL_PEERS_MAX 16

struct control;

/* NULL: no socket can be made there; the job can go on without. `ops` and `context` outlive it. */
struct control *control_create(struct loop *loop, const char *job_id, const struct control_ops *ops,
                               void *context, struct error *err);
/* How the socket dir/name is called, whose folder's path is `folder`: that may be longer than a
 * socket's address, and then only /proc has a name for it. -1 and errno. */
int control_address(int dir, const char *folder, const char *name, struct sockaddr_un *out);

const char *control_path(const struct control *control);
void control_destroy(struct control *control); /* and removes the socket; accepts NULL */
