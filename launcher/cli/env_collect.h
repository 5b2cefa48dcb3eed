/* SPDX-License-Identifier: Apache-2.0 */
/* Turns -x, [env] and --env-file into pairs NAME=VALUE. model/env/scrub.h says what they mean. */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "model/settings/settings.h"

/* Adds the variables of each -x in `settings` to `env`. A -x without effect adds a line to
 * `warnings`. */
int env_collect(const struct settings *settings, char *const *envp, struct strv *env,
                struct strv *warnings, struct error *err);

/* Reads the files of settings.env_file and then applies settings.env. Afterwards settings.env has
 * only pairs. */
int env_collect_job(struct settings *settings, char *const *envp, struct strv *warnings,
                    struct error *err);
