/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the limit of open files leaves room for a crew's workers. */
#pragma once

#include "agent/crew_apps.h"
#include "base/error.h"
#include "wire/control.pb-c.h"

/* Asked before anything runs, since a job of which some ranks cannot be started is of no use. -1:
 * `err` says what is needed and what there is. */
int crew_files_check(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                     struct error *err);
