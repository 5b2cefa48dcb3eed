/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: argv, configuration files and environment in; settings, programs and warnings
 * out.
 *
 * Options end at the first word that is not an option (the program), or at `--`. After the program,
 * a single `:` begins the next program. With a `--` before the program, every `:` is an argument.
 * Options before the first program belong to the job. After a `:`, only options of one program are
 * possible (-np, -x, --wdir). With several programs, each needs its own -np.
 *
 * If the program is a launcher of features.def, its line becomes options and a program of hvdrun. A
 * hvdrun that was started by the name of such a launcher has only its line.
 *
 * Precedence: defaults < ~/.config/hvdrun/config.ini < --config-file < HVDRUN_* < flags.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/first_word.h"
#include "model/plan/plan.h"
#include "model/settings/line.h"
#include "model/settings/settings.h"

struct command_line {
    struct settings settings; /* np: the sum of all programs, 0: not given;
                                 env: every entry is NAME=VALUE, also those of --env-file; but as
                                 given if show_config is set */
    struct app_list apps;     /* empty if help, version, check_build, show_config or check is set */
    bool help_all;            /* `--help all` */
    struct strv warnings;     /* one line each, to print unless --quiet */
    char *line_help;          /* owned; `torchrun --help`; NULL: another help, or none */
    char *own_address;        /* owned; of a line of another launcher, as in struct line */
    struct line_nodes nodes;  /* of a line of another launcher */
    bool dials;               /* it is not the driver of its job, but an agent (cli/features.h) */
    struct check_words check; /* `hvdrun check`: there must not be a program */
    struct strv more; /* after an error: further mistakes, and the line as hvdrun wants it */
};

/* `envp` is that of main(), NULL-ended. -1: err->status is STATUS_USAGE, or STATUS_LAUNCHER if a
 * file cannot be read. The caller may destroy `out` in any case. */
int command_line_parse(int argc, char *const *argv, char *const *envp, struct command_line *out,
                       struct error *err);
void command_line_destroy(struct command_line *line);
