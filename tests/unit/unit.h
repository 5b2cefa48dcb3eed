/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a room's unit tests: `unit_ROOM NOUN` runs those of one noun. The `main` of each
 * test_NOUN.c is a function of this program, under another name that the build gives it.
 */
#pragma once

/* What any other command line runs: the room's own helper process, or an experiment by hand. At
 * most one file of a room defines it; without one such a call is wrong usage. */
int unit_called_otherwise(int argc, char **argv);
