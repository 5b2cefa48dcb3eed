/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a look are, and `hvdrun stacks`, which asks for it over the control socket. */
#pragma once

#include "features/hang/places.h"
#include "features/stacks/look_driver.h"

/* `ranks`: only these; NULL: all. The caller destroys them. Their texts are borrowed from the look.
 */
struct places *stacks_places(const struct ask *look, const struct look_ranks *ranks);
