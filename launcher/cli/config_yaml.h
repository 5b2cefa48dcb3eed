/* SPDX-License-Identifier: Apache-2.0 */
/*
 * horovodrun's YAML configuration: one mapping of sections (params, autotune, timeline,
 * stall_check, library_options, logging). Each section maps keys to plain values. `controller` and
 * `verbose` are outside of the sections. A key without a value has no effect.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "model/settings/settings.h"

/* Errors begin with "FILE:LINE: ". */
int config_yaml_read(const char *bytes, size_t length, const char *file, struct settings *settings,
                     struct error *err);
