/* SPDX-License-Identifier: Apache-2.0 */
/* A member of a process set finds the root: it tries the points of the invitation in turn. */
#pragma once

#include "loop/channel_setup.h"

/* `fd`: -1 before; then a connection to the root, not blocking. HVD_ERR_PEER_LOST without an error:
 * `stop` is readable. */
enum hvd_status member_meet(const struct channel_setup *setup, int *fd, struct error *err);
