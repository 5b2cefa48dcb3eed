/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: which there are, and which of the two formats they are in.
 */
#pragma once

#include "base/error.h"
#include "model/settings/settings.h"

/* The user's own file: $XDG_CONFIG_HOME/hvdrun/config.ini or ~/.config/hvdrun/config.ini (INI
 * only). That it is missing is fine; that it cannot be read is an error. */
int config_file_user(char *const *envp, struct settings *settings, struct error *err);

/* --config-file: INI or horovodrun's YAML, by the name's ending, else by what is inside. */
int config_file_named(const char *path, struct settings *settings, struct error *err);
