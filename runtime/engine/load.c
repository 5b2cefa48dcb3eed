/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/self.h"

#ifndef HVD_MODULES
#define HVD_MODULES "/usr/lib/hvd" /* the build sets it */
#endif

static char *path_of(const char *folder, const char *name)
{
    return mem_printf("%s/hvd-%s.so", folder, name);
}

static enum hvd_status explain(const char *path, const char *name, struct error *err)
{
    const char *why = dlerror();
    if (access(path, R_OK) != 0)
        error_errno(err, errno, "cannot open %s, the engine '%s' of libhvd: install it", path,
                    name);
    else
        error_set(err, "cannot load the engine '%s': %s", name, why != NULL ? why : path);
    return HVD_ERR_UNSUPPORTED;
}

enum hvd_status engine_load(const char *folder, const char *name, const struct engine **engine,
                            struct error *err)
{
    if (strcmp(name, engine_self.name) == 0) {
        *engine = &engine_self;
        return HVD_OK;
    }
    char *path AUTO_FREE = path_of(folder, name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        return explain(path, name, err);
    union {
        void *object;
        const struct engine *(*function)(void);
    } symbol = {dlsym(module, ENGINE_MODULE_SYMBOL)};
    *engine = symbol.object != NULL ? symbol.function() : NULL;
    if (*engine != NULL && (*engine)->version == ENGINE_VERSION)
        return HVD_OK;
    error_set(err, "%s is not of this version of libhvd: install both together", path);
    return HVD_ERR_UNSUPPORTED;
}

bool engine_exists(const char *folder, const char *name)
{
    char *path AUTO_FREE = path_of(folder, name);
    return strcmp(name, engine_self.name) == 0 || access(path, R_OK) == 0;
}

/* hvd/ beside the file that has this function. NULL: not known. */
static char *folder_beside(void)
{
    union {
        void *object;
        char *(*function)(void);
    } here = {.function = engine_folder};
    Dl_info info;
    if (dladdr(here.object, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash == NULL ? 0 : (int)(slash + 1 - info.dli_fname);
    return mem_printf("%.*shvd", length, info.dli_fname);
}

/* A program that contains libhvd statically is anywhere. */
char *engine_folder(void)
{
    static const char *const installed[] = {HVD_MODULES, "/usr/lib/hvd", "/usr/local/lib/hvd"};
    char *beside = folder_beside();
    if (beside != NULL && access(beside, X_OK) == 0)
        return beside;
    free(beside);
    for (size_t i = 0; i < sizeof installed / sizeof installed[0]; i++)
        if (access(installed[i], X_OK) == 0)
            return mem_strdup(installed[i]);
    return mem_strdup(HVD_MODULES);
}
