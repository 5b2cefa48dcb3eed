/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running elastic job, for `hvdrun status`, `drain`, `undrain` and `add`
 * (driver/control/request.h has the requests).
 *
 * It is a Unix socket of mode 0600, named JOB.control, in a runtime folder of the driver
 * (node/runtime_dir.h). That folder belongs to this user alone and is locked while the driver
 * lives. If the driver dies, the next start of hvdrun removes it. Only this user and root may
 * connect. A connection gets its answers in the order of its requests. Beyond CONTROL_PEERS_MAX
 * connections the next one waits until another one closes.
 */
#pragma once

#include <sys/un.h>

#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_SUFFIX ".control"
#define CONTROL_PEERS_MAX 16

struct control;

/* NULL: the socket cannot be created; the job can run without it. `ops` and `context` outlive
 * it. */
struct control *control_create(struct loop *loop, const char *job_id, const struct control_ops *ops,
                               void *context, struct error *err);
/* The address of the socket `name` in the folder `folder`, open as `dir`. A path that is too
 * long for a socket address is named through /proc. -1 and errno. */
int control_address(int dir, const char *folder, const char *name, struct sockaddr_un *out);

const char *control_path(const struct control *control);
void control_destroy(struct control *control); /* and removes the socket; accepts NULL */
