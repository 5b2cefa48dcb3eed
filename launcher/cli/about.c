/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about the build come from cmake/versions.cmake. */
#include "cli/about.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/about_test.h"
#include "cli/features.h"

/*
 * The versions of the libraries that hvdrun's modules link with: those at build time, and those on
 * this machine, which may differ after an upgrade. Loads all of these libraries.
 *
 * The libraries' headers belong to other rooms, so this file finds their functions by name. The
 * versions at build time come from cmake/versions.cmake.
 */

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
#define GLIBC_BUILT TEXT(__GLIBC__) "." TEXT(__GLIBC_MINOR__)

#ifndef HVDRUN_PMIX_BUILT
#define HVDRUN_PMIX_BUILT "?"
#define HVDRUN_HWLOC_BUILT "?"
#define HVDRUN_SSH2_BUILT "?"
#define HVDRUN_OPENSSL_BUILT "?"
#define HVDRUN_DW_BUILT "?"
#endif

#define ROW "  %-8s  %-18s  "

/* A function of a library that returns its version. */
union teller {
    void *object;
    const char *(*text)(void);
    const char *(*text_of)(int which); /* 0: the version, whatever the library */
    unsigned (*api)(void);             /* 0x00020800 is 2.8 */
};

static void tell_text(union teller teller, struct buf *out)
{
    library_versions_number(teller.text(), out);
}

static void tell_text_of(union teller teller, struct buf *out)
{
    library_versions_number(teller.text_of(0), out);
}

static void tell_api(union teller teller, struct buf *out)
{
    unsigned number = teller.api();
    buf_printf(out, "API %u.%u", number >> 16, number >> 8 & 0xffu);
}

static const struct library {
    const char *name, *built, *module, *symbol;
    void (*tell)(union teller teller, struct buf *out);
} libraries[] = {
    {"PMIx", HVDRUN_PMIX_BUILT, "hvdrun-pmix.so", "PMIx_Get_version", tell_text},
    {"hwloc", HVDRUN_HWLOC_BUILT, "hvdrun-topology.so", "hwloc_get_api_version", tell_api},
    {"libssh2", HVDRUN_SSH2_BUILT, "hvdrun-ssh.so", "libssh2_version", tell_text_of},
    {"OpenSSL", HVDRUN_OPENSSL_BUILT, "hvdrun-tls.so", "OpenSSL_version", tell_text_of},
    {"libdw", HVDRUN_DW_BUILT, "hvdrun-unwind.so", "dwfl_version", tell_text_of},
};

void library_versions_number(const char *text, struct buf *out)
{
    size_t skip = text == NULL ? 0 : strcspn(text, "0123456789");
    size_t length = text == NULL ? 0 : strcspn(text + skip, " ,)");
    buf_printf(out, "%.*s", length == 0 ? 1 : (int)length, length == 0 ? "?" : text + skip);
}

/* Opens the module as a job does. It stays open, because not every library survives dlclose(). */
static void tell_library(const struct library *library, const char *module_dir, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("%s/%s", module_dir, library->module);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle == NULL ? dlerror() : NULL;
    union teller teller = {.object = handle == NULL ? NULL : dlsym(handle, library->symbol)};
    buf_printf(out, ROW, library->name, library->built);
    if (handle == NULL)
        buf_printf(out, "cannot be loaded: %s", why == NULL ? path : why);
    else if (teller.object == NULL)
        buf_puts(out, "in the module"); /* a portable build */
    else
        library->tell(teller, out);
    buf_putc(out, '\n');
}

/* Appends a table with a line for each library. `module_dir` is the folder of the modules. If a
 * library cannot be loaded, its line has the loader's reason. */
static void library_versions_text(const char *module_dir, struct buf *out)
{
    buf_printf(out, ROW "here\n", "library", "built with");
    buf_printf(out, ROW "%s\n", "glibc", GLIBC_BUILT, gnu_get_libc_version());
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        tell_library(&libraries[i], module_dir, out);
}

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
    buf_puts(out, "\nFeatures that a build may leave out:\n");
    features_text(out);
    buf_puts(out, "\n'hvdrun check' checks the hosts of a job.\n");
}
