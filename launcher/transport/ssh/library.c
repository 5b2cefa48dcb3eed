/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/library.h"

#include <dlfcn.h>

const struct ssh_module *ssh_library_open(const char *path, struct error *err)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *cause = dlerror();
        error_set(err, "cannot load %s (is libssh2 installed?)", cause == NULL ? path : cause);
        return NULL;
    }
    const struct ssh_module *module = dlsym(handle, SSH_MODULE_SYMBOL);
    if (module != NULL && module->version == SSH_MODULE_VERSION)
        return module;
    error_set(err, "%s belongs to another version of hvdrun: install both from one package", path);
    dlclose(handle);
    return NULL;
}
