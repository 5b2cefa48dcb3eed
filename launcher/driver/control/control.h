/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running job, for `hvdrun ps`, `status`, `stop` and the other commands
 * (driver/control/request.h has the requests).
 *
 * It is a Unix socket of mode 0600 in the folder of jobs (driver/control/folder.h), which belongs
 * to this user alone. Only this user and root may connect. A connection gets its answers in the
 * order of its requests. Beyond CONTROL_PEERS_MAX connections the next one waits until another one
 * closes. Clients that wait for the end of the job do not count there; they may be
 * CONTROL_WAITING_MAX.
 */
#pragma once

#include <sys/un.h>

#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_PEERS_MAX 16
#define CONTROL_WAITING_MAX 256
#define CONTROL_LINE_MAX ((size_t)65536) /* bytes of a request */

struct control;

/* Copies `answers`, with the name of the record, which must be locked. NULL: the socket cannot be
 * created; the job can run without it. `folder` and the context of the answers outlive it. */
struct control *control_create(struct loop *loop, int folder, const struct control_answers *answers,
                               struct error *err);
/* The address of the socket `name` in the folder `folder`, open as `dir`. A path that is too
 * long for a socket address is named through /proc. -1 and errno. */
int control_address(int dir, const char *folder, const char *name, struct sockaddr_un *out);

const char *control_path(const struct control *control);

/* The job has ended: answers the clients that wait for that. `end` is borrowed. */
void control_finish(struct control *control, const json_t *end);
void control_destroy(struct control *control); /* and removes the socket; accepts NULL */
