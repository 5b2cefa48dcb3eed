/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first word of the command line when it looks like a command, but is neither a command of
 * hvdrun nor a program: `hvdrun help`, `hvdrun stop`, `hvdrun statsu`. Without this, hvdrun would
 * start agents first, and then report a missing program.
 */
#pragma once

#include "base/error.h"

/* `path` is the value of PATH. Call it after the commands of cli/control_words.h. -1: the error
 * says which command or option is near; STATUS_USAGE. */
int first_word_check(int argc, char *const *argv, const char *path, struct error *err);
