/* SPDX-License-Identifier: Apache-2.0 */
/* The text of --help: all options by group, within 80 columns. */
#pragma once

#include "base/buf.h"

void help_text(struct buf *out);
