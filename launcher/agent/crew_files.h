/* SPDX-License-Identifier: Apache-2.0 */
/* Does the limit of open files leave room for a crew's workers? */
#pragma once

#include "agent/crew_apps.h"
#include "base/error.h"
#include "wire/control.pb-c.h"

/* Call it before anything runs: a job is useless if some of its ranks cannot start. -1: `err` says
 * how many files are needed and how many are allowed. */
int crew_files_check(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                     struct error *err);
