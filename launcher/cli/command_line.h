/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: argv, configuration files and environment in; settings, programs and warnings
 * out.
 *
 * Options end at the first word that is not one (the program) or at `--`. After the program a lone
 * `:` starts the next program, unless a `--` came before the program: then every `:` is an
 * argument. Options before the first program are the job's; after a `:` only those of one program
 * (-np, -x,
 * --wdir) may stand. With several programs each needs its -np.
 *
 * Precedence: defaults < ~/.config/hvdrun/config.ini < --config-file < HVDRUN_* < flags.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "cli/check_words.h"
#include "model/plan/app.h"
#include "model/settings/settings.h"

struct command_line {
    struct settings settings; /* np: the sum when there are several programs, 0 when not given;
                                 env: every entry NAME=VALUE, those of --env-file included */
    struct app_list apps;     /* empty only when help, version or check_build is set */
    struct strv warnings;     /* one line each, to print unless quiet */
    struct check_words check; /* `hvdrun check`: no program may be there */
};

/* `envp` as of main(), NULL-ended. On failure returns -1 with err->status STATUS_USAGE (or
 * STATUS_LAUNCHER where a file cannot be read); `out` may be destroyed in either case. */
int command_line_parse(int argc, char *const *argv, char *const *envp, struct command_line *out,
                       struct error *err);
void command_line_destroy(struct command_line *line);
