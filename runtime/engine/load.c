/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- Choosing -------------------------------------------------------------------------------- */

static const char self[] = "self", mpi[] = "mpi", gloo[] = "gloo";

/* `*name` is NULL if the variable is not set. */
static int read_name(setup_get *get, const char *variable, const char **name, struct error *err)
{
    const char *text = get(variable);
    *name = NULL;
    if (text == NULL || text[0] == '\0')
        return 0;
    if (strcasecmp(text, mpi) == 0)
        *name = mpi;
    else if (strcasecmp(text, gloo) == 0)
        *name = gloo;
    else
        return error_set(err, "%s is '%s', and must be mpi or gloo", variable, text);
    return 0;
}

static const char *by_environment(const struct engine_setup *setup, setup_get *get)
{
    if (setup->address != NULL || setup->place.size > 1)
        return gloo;
    return get("OMPI_COMM_WORLD_SIZE") != NULL || get("PMIX_RANK") != NULL ? mpi : self;
}

enum hvd_status engine_choose(const struct engine_setup *setup, setup_get *get, const char **name,
                              struct error *err)
{
    const char *controller, *operations;
    if (read_name(get, "HOROVOD_CONTROLLER", &controller, err) != 0 ||
        read_name(get, "HOROVOD_CPU_OPERATIONS", &operations, err) != 0)
        return HVD_ERR_ARGUMENT;
    if (controller != NULL && operations != NULL && controller != operations) {
        error_set(err,
                  "HOROVOD_CONTROLLER is %s and HOROVOD_CPU_OPERATIONS is %s: they must be equal",
                  controller, operations);
        return HVD_ERR_ARGUMENT;
    }
    *name = controller != NULL ? controller : operations;
    if (*name == NULL)
        *name = by_environment(setup, get);
    if (*name == gloo && setup->place.size <= 1)
        *name = self;
    if (*name == gloo && setup->address == NULL) {
        error_set(err,
                  "HOROVOD_SIZE is %d, and HOROVOD_GLOO_RENDEZVOUS_ADDR is not set: start the "
                  "program with hvdrun",
                  setup->place.size);
        return HVD_ERR_ARGUMENT;
    }
    return HVD_OK;
}

/* ---- Loading --------------------------------------------------------------------------------- */

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
