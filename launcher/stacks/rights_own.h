/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of this process itself. */
#pragma once

#include "stacks/rights.h"

extern const struct rights rights_own;
