/* SPDX-License-Identifier: Apache-2.0 */
/* Options from elsewhere than the command line: the environment and the configuration files. */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "model/settings/settings.h"

/* The value of `name` in a NULL-ended environment, borrowed. NULL: it is not set. */
const char *env_value(char *const *envp, const char *name);

/* Applies the options in `envp`: HVDRUN_TIMEOUT=5m is --timeout 5m. An empty value has no effect.
 * An unknown HVDRUN_ name adds a line to `warnings`. */
int env_options_apply(char *const *envp, struct settings *settings, struct strv *warnings,
                      struct error *err);

/* Reads the user's own file: $XDG_CONFIG_HOME/hvdrun/config.ini or ~/.config/hvdrun/config.ini (INI
 * only). The file need not exist, but it is an error if it exists and is not readable. */
int config_file_user(char *const *envp, struct settings *settings, struct error *err);

/* Reads the file of --config-file: INI or horovodrun's YAML. The end of the name decides, otherwise
 * the content. */
int config_file_named(const char *path, struct settings *settings, struct error *err);
