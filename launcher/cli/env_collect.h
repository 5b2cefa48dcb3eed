/* SPDX-License-Identifier: Apache-2.0 */
/* -x, [env] and --env-file made into NAME=VALUE pairs; what they mean is model/env/scrub.h. */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "model/settings/settings.h"

/* Adds what each -x of `given` names to `env`. One that has no effect is a line in `warnings`. */
int env_collect(const struct strv *given, char *const *envp, struct strv *env,
                struct strv *warnings, struct error *err);

/* Reads the files of settings.env_file and then applies settings.env; afterwards settings.env holds
 * pairs only. */
int env_collect_job(struct settings *settings, char *const *envp, struct strv *warnings,
                    struct error *err);
