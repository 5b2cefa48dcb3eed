/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of crew_apps need, and nobody else. */
#pragma once

#include "agent/crew_apps.h"
#include "base/error.h"

/* Completes the error of child_find() for `program`, which a worker in folder `wdir` (NULL: where
 * we are) would execute. A script that nobody made executable: chmod +x, or its interpreter in
 * front of it. Other errors stay as they are. */
void program_advice(const char *program, const char *wdir, struct error *err);
