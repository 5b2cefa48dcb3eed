/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun status`, `drain`, `undrain` and `add`: a word with a running job, then the end. */
#pragma once

/* The exit status, after everything has been printed; -1: argv[1] is no such command, so it is a
 * job to start. */
int control_command(int argc, char *const *argv);
