/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first word of the command line when it looks like a command, but is neither a command of
 * hvdrun nor a program: `hvdrun list`, `hvdrun statsu`. Without this, hvdrun would start agents
 * first, and then report a missing program. Also `hvdrun help [COMMAND | all]`, and
 * the words of `hvdrun check`.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* `path` is the value of PATH. Call it after the commands of cli/control_words.h. -1: the error
 * says which command or option is near; STATUS_USAGE. */
int first_word_check(int argc, char *const *argv, const char *path, struct error *err);

/* Replaces `help COMMAND` by `COMMAND --help`, `help` alone by `--help`, and `help all` by
 * `--help all`. `*argv` becomes `room` (of 4 words) or stays as it is. -1: there is no such
 * command; STATUS_USAGE. */
int first_word_help(int *argc, char ***argv, char **room, struct error *err);

/* `hvdrun check [--net] [--gpu] [--json] [options of a job]` checks the hosts instead of starting a
 * job. The word must be the very first argument: `hvdrun -- check` starts a program with that name.
 */
struct check_words {
    bool wanted, net, gpu, json;
    const char *python; /* borrowed; "python3" without --python */
};

#define CHECK_WORD "check"
#define CHECK_OPERANDS "[--net] [--gpu [--python PROGRAM]] [--json] [OPTIONS]"
#define CHECK_HELP "Check the hosts of -H, --hostfile or the allocation; start no job"

/* Takes the word and its own options out of argv, which is NULL-ended, and returns how many words
 * remain. */
int check_words_take(char **argv, struct check_words *out);

int check_words_refuse(const char *word, struct error *err); /* -1: `word` is not an option here */
void check_words_help(struct buf *out);
