/* SPDX-License-Identifier: Apache-2.0 */
/* Where NCCL's RAS of the workers here listens (features/hang/ras_client.h). */
#pragma once

#include "agent/crews.h"

/* The value of NCCL_RAS_ADDR with which a worker that runs has started, or NCCL's own. The caller
 * frees it. NULL: no worker runs. */
char *ras_address_of(const struct crews *crews);
