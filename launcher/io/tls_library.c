/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tls_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

const struct tls_module *tls_library_open(const char *path, struct error *err)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *cause = dlerror();
        if (access(path, F_OK) < 0)
            error_set(err, "%s is missing, a file of hvdrun: install hvdrun again", path);
        else
            error_set(err, "cannot load hvdrun-tls.so: %s; is OpenSSL 3 installed (libssl3)?",
                      cause == NULL ? path : cause);
        return NULL;
    }
    const struct tls_module *module = dlsym(handle, TLS_MODULE_SYMBOL);
    if (module != NULL && module->version == TLS_MODULE_VERSION)
        return module;
    error_set(err, "%s belongs to another version of hvdrun: install both from one package", path);
    dlclose(handle);
    return NULL;
}
