/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of probe need, and nobody else. */
#pragma once

#include <stddef.h>

#include "driver/check/probe.h"

#define CHECK_ALL_PAIRS 64
