/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks do because hvdrun asked them, while it collects evidence: PyTorch writes a line
 * and a file when it dumps its flight recorder, uses new memory and its processor, and asks its
 * GPU. That is not progress, so it is subtracted from the numbers. What the rank's library
 * completes and what the rank reports is progress even then.
 */
#pragma once

#include <stdbool.h>

#include "model/hang/hang.h"

struct hang_stir;

struct hang_stir *hang_stir_create(void);
void hang_stir_destroy(struct hang_stir *stir); /* accepts NULL */

void hang_stir_asks(struct hang_stir *stir, bool asks); /* does hvdrun ask now? */

/* Changes the newest numbers of a worker. */
void hang_stir_take(struct hang_stir *stir, int seat, struct hang_sample *sample);
