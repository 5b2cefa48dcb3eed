/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crashes of the program. Each counts against its slot, until the slot is blacklisted. When the
 * program has crashed on every host, the program itself is at fault.
 */
#pragma once

#include "model/elastic/job.h"

/* Counts this crash. False: the program is at fault, and the verdict is given. */
bool elastic_crashes_count(struct elastic *e, const struct elastic_failure *failure);

/* The program has lately crashed on every usable host, and on more than one. */
bool elastic_crashes_everywhere(const struct elastic *e);
