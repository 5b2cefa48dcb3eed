/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks do because hvdrun asked them, while it collects evidence: PyTorch writes a line
 * and a file when it dumps its flight recorder. That is not progress, so it is subtracted from the
 * numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hang_stir;

struct hang_stir *hang_stir_create(void);
void hang_stir_destroy(struct hang_stir *stir); /* accepts NULL */

void hang_stir_asks(struct hang_stir *stir, bool asks); /* does hvdrun ask now? */

/* Changes the newest numbers of a worker. */
void hang_stir_take(struct hang_stir *stir, int seat, uint64_t *output, uint64_t *io_bytes);
