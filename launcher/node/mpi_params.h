/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI's parameter files, as far as we must know what they say.
 *
 * Open MPI refuses btl_tcp_if_include and btl_tcp_if_exclude together, wherever each of them comes
 * from. So before one of them is set in the environment of workers, the files are looked at: the
 * user's ~/.openmpi/mca-params.conf, etc/openmpi-mca-params.conf beside each bin folder of PATH,
 * and those of packages in /etc. What cannot be read says nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Does one of the files choose TCP's interfaces? Either value may be NULL. */
bool mpi_params_choose_tcp(const char *home, const char *path);

/* Do the bytes of such a file set one of the two? */
bool mpi_params_text_chooses_tcp(const char *bytes, size_t length);
