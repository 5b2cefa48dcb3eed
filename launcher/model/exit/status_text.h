/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends "exit status 3", or "exit status 137 (SIGKILL)": shells, sshd and hvdrun's keeper report
 * the signal that ended their child as 128 + its number. Pure. */
void status_text(int status, struct buf *out);
