/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options from the environment: HVDRUN_TIMEOUT=5m is --timeout 5m. An empty value is as if it were
 * unset.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "model/settings/settings.h"

/* The value of `name` in a NULL-ended environment; NULL when unset. Borrowed. */
const char *env_value(char *const *envp, const char *name);

/* Sets what `envp` says. A HVDRUN_ name that means nothing is a line in `warnings`. */
int env_options_apply(char *const *envp, struct settings *settings, struct strv *warnings,
                      struct error *err);
