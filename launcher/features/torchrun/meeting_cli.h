/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of one line, which a scheduler or the user starts on each host, become one job. The copy
 * at the meeting address is the driver, as if its line had --transport dial with all hosts. The
 * others become agents that dial in (agent_main/dial_words.h). They first look at the line as the
 * driver does, so that each copy says at once what is wrong with it.
 *
 * A copy is such a one if nothing names hosts: no option, and no scheduler but a step of srun with
 * several tasks. Of several copies on the machine of the address, the first is the driver.
 */
#pragma once

#include "cli/command_line.h"

/* For a line that `dials`. Returns only if there is no hvdrun-agent: -1. */
int meeting_go(const struct command_line *line, struct error *err);
