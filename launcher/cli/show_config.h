/* SPDX-License-Identifier: Apache-2.0 */
/* What --show-config prints: the value of each option, and where it comes from. Pure. */
#pragma once

#include "base/buf.h"
#include "model/settings/settings.h"

/*
 * Appends a line for each option, in three columns: the name of the option without dashes, its
 * value, and the source of the value. A value that is empty or has blanks is in double quotes; "-"
 * is an option without value. The source is "default", FILE:LINE, "variable NAME" or "command line
 * OPTION". A list has a line for each item. `env` has one for each variable that is given, with the
 * value that counts.
 *
 * Values of variables whose names look like secrets (TOKEN, KEY, PASSWORD...) are masked, as are
 * such NAME=VALUE words inside other values, and passwords in URLs.
 */
void show_config_text(const struct settings *settings, struct buf *out);

/* Appends `value`, masked as above. `whole`: it is one NAME=VALUE, and VALUE ends with the text. */
void show_config_masked(const char *value, bool whole, struct buf *out);
