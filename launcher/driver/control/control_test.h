/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of control need, and nobody else. */
#pragma once

#include "driver/control/control.h"
#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_LINE_MAX ((size_t)65536)
