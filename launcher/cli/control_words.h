/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command lines that show jobs and talk to them. The command must be the very first argument:
 * `hvdrun -- status` and `hvdrun ./status` start a program with that name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/control_forms.h"

struct control_words { /* all text is borrowed from argv */
    enum control_command command;
    const char *object;      /* HOST, HOSTS, SIGNAL or start, list, stop; NULL with the others */
    const char *job;         /* NULL: the only running job */
    const char *ranks;       /* NULL: all */
    const char *slurm_job;   /* a number; NULL: the job is here */
    const char *host, *with; /* of shell and debug; NULL */
    int64_t rank;            /* likewise; -1 */
    char *const *argv;       /* of shell, behind "--"; NULL-ended; NULL: none */
    bool all, all_users, quiet, names, json, help;
    bool follow, sig_proxy, once, native, continues;
    bool has_time; /* --within, --grace, --since, --twice, --idle */
    int64_t time_ms;
    bool has_lines;
    int64_t lines; /* -1: all */
    int64_t mib;   /* --memory; 0: not given */
};

/* 1: a command; 0: not a command, so the line starts a job; -1: a wrong command (STATUS_USAGE). */
int control_words_parse(int argc, char *const *argv, struct control_words *out, struct error *err);
