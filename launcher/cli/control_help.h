/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun logs --help`, `hvdrun help logs`. */
#pragma once

#include "base/buf.h"
#include "cli/control_forms.h"

/* Appends what the command does, and its options. */
void control_help(enum control_command command, struct buf *out);
