/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the configuration files, and reads each in its format (INI or YAML).
 */
#pragma once

#include "base/error.h"
#include "model/settings/settings.h"

/* Reads the user's own file: $XDG_CONFIG_HOME/hvdrun/config.ini or ~/.config/hvdrun/config.ini (INI
 * only). The file need not exist, but it is an error if it exists and is not readable. */
int config_file_user(char *const *envp, struct settings *settings, struct error *err);

/* Reads the file of --config-file: INI or horovodrun's YAML. The end of the name decides, otherwise
 * the content. */
int config_file_named(const char *path, struct settings *settings, struct error *err);
