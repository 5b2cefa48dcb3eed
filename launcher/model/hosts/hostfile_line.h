/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfiles with a host on each line (docs/hosts.md): what horovodrun, Open MPI, MPICH, Slurm,
 * PBS, LSF and SGE write. Each line is read on its own, so dialects may be mixed. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/hosts/hostfile_text.h"
#include "model/hosts/hosts.h"

/* Without blanks in front: "[defaults]" or "[host a]", but neither "[fe80::1]" nor "[1-3]node". */
bool hostfile_line_is_section(const char *text, size_t length);

/* As hostfile_parse(), without a byte order mark. */
int hostfile_lines_parse(const struct hostfile *file, struct host_list *out, struct error *err);
