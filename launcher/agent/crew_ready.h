/* SPDX-License-Identifier: Apache-2.0 */
/* READY: the answer of a crew to PREPARE. */
#pragma once

#include "agent/crew_setup.h"
#include "agent/post.h"

/* `problem`: why the crew cannot start; NULL: it can. */
void crew_ready_send(const struct post *post, const struct crew_setup *setup,
                     const struct error *problem);
