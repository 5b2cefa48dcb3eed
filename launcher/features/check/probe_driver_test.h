/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of probe need, and nobody else. */
#pragma once

#include <stddef.h>

#include "features/check/probe_driver.h"

#define CHECK_ALL_PAIRS 64
