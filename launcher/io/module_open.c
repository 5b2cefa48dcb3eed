/* SPDX-License-Identifier: Apache-2.0 */
#include "io/module_open.h"

#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

const void *module_open(const char *path, const struct module_kind *kind, struct error *err)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *cause = handle == NULL ? dlerror() : NULL;
    const int *version = handle == NULL ? NULL : dlsym(handle, kind->symbol);
    if (version != NULL && *version == kind->version)
        return version;
    if (handle == NULL && access(path, F_OK) < 0)
        error_set(err, "%s is missing, a file of hvdrun: install hvdrun again", path);
    else if (handle == NULL)
        error_set(err, "cannot load %s: %s; %s", kind->file, cause == NULL ? path : cause,
                  kind->remedy);
    else
        error_set(err, "%s belongs to another version of hvdrun: install both from one package",
                  path);
    if (handle != NULL)
        dlclose(handle);
    return NULL;
}
