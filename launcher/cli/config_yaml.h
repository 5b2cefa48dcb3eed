/* SPDX-License-Identifier: Apache-2.0 */
/*
 * horovodrun's YAML configuration: one mapping of sections (params, autotune, timeline,
 * stall_check, library_options, logging), each a mapping of keys to plain values; `controller` and
 * `verbose` stand at the top. A key without a value is as if it were not there.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "model/settings/settings.h"

/* Errors begin with "FILE:LINE: ". */
int config_yaml_read(const char *bytes, size_t length, const char *file, struct settings *settings,
                     struct error *err);
