/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INI configuration. Each group of options has a section (launch, output, tune, elastic, ssh). Its
 * keys are the names of the long options. [env] has variables for the workers. Comments start with
 * # or ; at the beginning of a line, or with ; after a blank.
 */
#pragma once

#include "base/error.h"
#include "model/settings/settings.h"

/* `text` is the whole file, without NUL bytes. Errors begin with "FILE:LINE: ". */
int config_ini_read(const char *text, const char *file, enum setting_source source,
                    struct settings *settings, struct error *err);
