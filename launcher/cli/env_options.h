/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options from the environment: HVDRUN_TIMEOUT=5m is --timeout 5m. An empty value has no effect.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "model/settings/settings.h"

/* The value of `name` in a NULL-ended environment, borrowed. NULL: it is not set. */
const char *env_value(char *const *envp, const char *name);

/* Applies the options in `envp`. An unknown HVDRUN_ name adds a line to `warnings`. */
int env_options_apply(char *const *envp, struct settings *settings, struct strv *warnings,
                      struct error *err);
