/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about the build come from cmake/versions.cmake. */
#include "cli/about.h"

#include <stdbool.h>
#include <stddef.h>

#include "cli/library_versions.h"

#ifndef HVDRUN_COMPILER
#define HVDRUN_COMPILER "?"
#define HVDRUN_MACHINE "?"
#define HVDRUN_CONTAINED "?"
#endif

struct part {
    const char *title; /* begins a new block; NULL: the line belongs to the block before */
    const char *name;
    bool built;
};

static const struct part parts[] = {
    {"Transports", "local (agents on this machine)", true},
    {NULL, "ssh (libssh2, or the ssh program)", true},
    {NULL, "commands (kubectl, docker, --launch-agent)", true},
    {NULL, "Slurm (srun)", true},
    {"Start-up of MPI programs", "PMIx (Open MPI)", true},
    {NULL, "PMI-1 (MPICH, Intel MPI, MVAPICH)", true},
    {"Horovod controllers", "Gloo", true},
    {NULL, "MPI", true},
    {"Features", "several programs in one job", true},
    {NULL, "MPI over several hosts", true},
    {NULL, "binding to cores, memory nodes, caches and GPUs", true},
    {NULL, "JSON report and events", true},
    {NULL, "INI and YAML configuration", true},
    {NULL, "elastic jobs", true},
};

void version_text(const char *module_dir, struct buf *out)
{
    buf_printf(out, "hvdrun %s\n", HVDRUN_VERSION);
    buf_printf(out, "built by %s for %s\n", HVDRUN_COMPILER, HVDRUN_MACHINE);
    buf_printf(out, "contains %s\n", HVDRUN_CONTAINED);
    buf_puts(out, "loads these libraries when a job needs them:\n");
    library_versions_text(module_dir, out);
}

void check_build_text(struct buf *out)
{
    buf_printf(out, "hvdrun %s\n", HVDRUN_VERSION);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].title != NULL)
            buf_printf(out, "\n%s:\n", parts[i].title);
        buf_printf(out, "    [%c] %s\n", parts[i].built ? 'X' : ' ', parts[i].name);
    }
    buf_puts(out, "\n'hvdrun check' checks the hosts of a job.\n");
}
