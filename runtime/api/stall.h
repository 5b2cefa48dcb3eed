/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher hears of a tensor that waits for too long. */
#pragma once

#include "core/action.h"
#include "line/packet.h"

/* Fills in a STALLED about a tensor of a process set. false: the set is not known any more. */
bool stall_packet(int32_t set, const struct stall *stall, struct line_packet *packet);
