/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of config alone. */
#pragma once

#include "base/error.h"
#include "cli/config.h"
#include "model/settings/settings.h"

/* `text` is the whole file, without NUL bytes. Errors begin with "FILE:LINE: ". */
int config_ini_read(const char *text, const char *file, enum setting_source source,
                    struct settings *settings, struct error *err);
