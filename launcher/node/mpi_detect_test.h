/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of mpi_detect alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/settings/words.h"
#include "node/mpi_detect.h"

bool mpi_launched_by_other(const char *environment, size_t length, enum mpi_kind given,
                           const char *nspace);
