/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of hostfile alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/hosts/hostfile.h"
#include "model/hosts/hostfile_ini.h"
#include "model/hosts/hosts.h"

/* Without blanks in front: "[defaults]" or "[host a]", but neither "[fe80::1]" nor "[1-3]node". */
bool hostfile_line_is_section(const char *text, size_t length);
