/* SPDX-License-Identifier: Apache-2.0 */
/* A string of a user as a scalar of YAML 1.1 or 1.2, on one line. Pure. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* UTF-8, without which there is no scalar. */
bool yaml_text_is_valid(const char *text);

/* Appends the text as it is if every reader of YAML takes it for that string, or else in double
 * quotes. It must be valid. */
void yaml_text_put(const char *text, struct buf *out);
