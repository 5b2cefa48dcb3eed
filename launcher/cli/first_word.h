/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first word of the command line when it looks like a command, but is neither a command of
 * hvdrun nor a program: `hvdrun list`, `hvdrun statsu`. Without this, hvdrun would start agents
 * first, and then report a missing program. Also `hvdrun help [COMMAND | all]`.
 */
#pragma once

#include "base/error.h"

/* `path` is the value of PATH. Call it after the commands of cli/control_words.h. -1: the error
 * says which command or option is near; STATUS_USAGE. */
int first_word_check(int argc, char *const *argv, const char *path, struct error *err);

/* Replaces `help COMMAND` by `COMMAND --help`, `help` alone by `--help`, and `help all` by
 * `--help all`. `*argv` becomes `room` (of 4 words) or stays as it is. -1: there is no such
 * command; STATUS_USAGE. */
int first_word_help(int *argc, char ***argv, char **room, struct error *err);
