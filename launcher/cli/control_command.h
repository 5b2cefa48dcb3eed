/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun status`, `drain`, `undrain` and `add`: talk to a running job and end. */
#pragma once

/* Runs the command and returns the exit status. -1: argv[1] is not such a command, so the command
 * line starts a job. */
int control_command(int argc, char *const *argv);
