/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of the manual page about a job: variables of the workers, signals, exit status. */
#pragma once

#include "base/buf.h"

void docgen_man_job(struct buf *out);
