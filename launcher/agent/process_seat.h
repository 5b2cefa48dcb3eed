/* SPDX-License-Identifier: Apache-2.0 */
/* To which worker does a process belong? To the one in whose session it is, or below which. */
#pragma once

#include "agent/crews.h"
#include "base/buf.h"

/* `scratch` has room for USAGE_TEXT_MAX. false: to none. */
bool process_seat(const struct crews *crews, pid_t pid, struct buf *scratch, uint32_t *seat);
