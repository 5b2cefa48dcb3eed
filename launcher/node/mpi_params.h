/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI's parameter files, as far as they matter to us.
 *
 * Open MPI refuses btl_tcp_if_include and btl_tcp_if_exclude together, from whatever sources. So we
 * read the files before we set one of them in the environment of workers: the user's
 * ~/.openmpi/mca-params.conf, etc/openmpi-mca-params.conf next to each bin folder of PATH, and
 * those of packages in /etc. A file that cannot be read counts as empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Does one of the files choose TCP's interfaces? Either value may be NULL. */
bool mpi_params_choose_tcp(const char *home, const char *path);

/* Do the bytes of such a file set one of the two? */
bool mpi_params_text_chooses_tcp(const char *bytes, size_t length);
