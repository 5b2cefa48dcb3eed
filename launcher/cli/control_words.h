/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command lines that talk to a running job. The command must be the very first argument:
 * `hvdrun -- status` and `hvdrun ./status` start a program with that name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* clang-format off */
#define CONTROL_COMMAND_LIST(X)                                                                    \
    X(CONTROL_STATUS,  "status",  "[JOB] [--json]",           "Show the state of a running job and its hosts") \
    X(CONTROL_DRAIN,   "drain",   "HOST [--within TIME]",     "Drain a host: it leaves the job within TIME") \
    X(CONTROL_UNDRAIN, "undrain", "HOST",                     "Let the job use a drained host again") \
    X(CONTROL_ADD,     "add",     "HOSTS",                    "Add hosts to the job, as in d:4,e:2")
/* clang-format on */

enum control_command {
#define CONTROL_ENUM(name, word, operands, help) name,
    CONTROL_COMMAND_LIST(CONTROL_ENUM)
#undef CONTROL_ENUM
        CONTROL_COMMANDS
};

struct control_words { /* all text is borrowed from argv */
    enum control_command command;
    const char *object; /* HOST or HOSTS; NULL with status */
    const char *job;    /* NULL: the only running job */
    bool has_within, json, help;
    int64_t within_ms;
};

/* 1: a command; 0: not a command, so the line starts a job; -1: a wrong command (STATUS_USAGE). */
int control_words_parse(int argc, char *const *argv, struct control_words *out, struct error *err);

void control_words_help(struct buf *out);
