/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/library.h"

#include <dlfcn.h>
#include <string.h>

/* NCCL starts threads, and has handlers that run at the end of the process: it stays loaded. */
static void *open_library(struct error *err)
{
    void *library = dlopen(NCCL_LIBRARY, RTLD_NOW | RTLD_NODELETE);
    if (library == NULL) {
        const char *why = dlerror();
        error_set(err,
                  "NCCL is not installed (%s): install libnccl2, or name its folder in "
                  "LD_LIBRARY_PATH",
                  why != NULL ? why : NCCL_LIBRARY);
    }
    return library;
}

static int find_function(void *library, const char *symbol, void *member, struct error *err)
{
    void *found = dlsym(library, symbol);
    if (found == NULL)
        return error_set(err, "%s does not have %s: install NCCL 2.13 or later", NCCL_LIBRARY,
                         symbol);
    memcpy(member, &found, sizeof found);
    return 0;
}

static int find_functions(struct nccl *nccl, struct error *err)
{
#define FIND(member, symbol, parameters)                                        \
    if (find_function(nccl->library, #symbol, (void *)&nccl->member, err) != 0) \
        return -1;
    NCCL_FUNCTION_LIST(FIND)
    FIND(error_text, ncclGetErrorString, )
    FIND(last_error, ncclGetLastError, )
#undef FIND
    if (nccl->get_version(&nccl->version) != NCCL_SUCCESS)
        return error_set(err, "%s does not tell its version", NCCL_LIBRARY);
    return nccl->version >= NCCL_VERSION_NEEDED
               ? 0
               : error_set(err, "%s has version %d, and libhvd needs %d (2.13) or later",
                           NCCL_LIBRARY, nccl->version, NCCL_VERSION_NEEDED);
}

int nccl_load(struct nccl *nccl, struct error *err)
{
    *nccl = (struct nccl){.library = open_library(err)};
    if (nccl->library != NULL && find_functions(nccl, err) == 0)
        return 0;
    nccl_unload(nccl);
    return -1;
}

void nccl_unload(struct nccl *nccl)
{
    if (nccl->library != NULL)
        dlclose(nccl->library);
    *nccl = (struct nccl){0};
}

int nccl_version(void)
{
    struct nccl nccl;
    if (nccl_load(&nccl, NULL) != 0)
        return 0;
    int version = nccl.version;
    nccl_unload(&nccl);
    return version;
}

int nccl_check(const struct nccl *nccl, int result, void *comm, const char *what, struct error *err)
{
    if (result == NCCL_SUCCESS)
        return 0;
    const char *more = nccl->last_error(comm);
    return error_set(err, "%s: %s%s%s", what, nccl->error_text(result),
                     more != NULL && more[0] != '\0' ? ": " : "", more != NULL ? more : "");
}
