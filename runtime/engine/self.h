/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a job with one rank. It needs no library and never waits. */
#pragma once

#include "engine/engine.h"

extern const struct engine engine_self;
