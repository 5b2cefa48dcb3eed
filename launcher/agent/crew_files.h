/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the limit of open files leaves room for a crew's workers. */
#pragma once

#include "agent/crew_setup.h"

/* Asked before anything runs, since a job of which some ranks cannot be started is of no use. -1:
 * `err` says what is needed and what there is. */
int crew_files_check(const struct crew_setup *setup, struct error *err);
