/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of hang_watch need, and nobody else. */
#pragma once

#include <stdbool.h>

#include "features/hang/hang.h"

struct hang_stir;
struct hang_stir *hang_stir_create(void);
void hang_stir_destroy(struct hang_stir *stir);         /* accepts NULL */
void hang_stir_asks(struct hang_stir *stir, bool asks); /* does hvdrun ask now? */

/* Changes the newest numbers of a worker. */
void hang_stir_take(struct hang_stir *stir, int seat, struct hang_sample *sample);
