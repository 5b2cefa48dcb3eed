/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/libraries.h"

#include <dlfcn.h>
#include <string.h>

/* False: the library does not have it. */
static bool find_function(void *library, const char *symbol, void *member)
{
    void *found = dlsym(library, symbol);
    memcpy(member, &found, sizeof found);
    return found != NULL;
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

int cuda_find(struct cuda *cuda, struct error *err)
{
    *cuda = (struct cuda){.library = dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_NOLOAD)};
    if (cuda->library == NULL)
        return 0;
    const char *missing = NULL;
#define FIND(member, symbol, parameters)                                                  \
    if (missing == NULL && !find_function(cuda->library, #symbol, (void *)&cuda->member)) \
        missing = #symbol;
    CUDA_FUNCTION_LIST(FIND)
#undef FIND
    if (missing == NULL)
        return 1;
    cuda_forget(cuda);
    return error_set(err,
                     "%s does not have %s: install a driver for CUDA 11.2 or later to use "
                     "memory of GPUs",
                     CUDA_LIBRARY, missing);
}

void cuda_forget(struct cuda *cuda)
{
    if (cuda->library != NULL)
        dlclose(cuda->library);
    *cuda = (struct cuda){0};
}

int cuda_device_of(const struct cuda *cuda, const void *pointer)
{
    static const int attributes[] = {CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_DEVICE_ORDINAL};
    unsigned type = 0;
    int ordinal = -1;
    void *data[] = {&type, &ordinal};
    if (pointer == NULL ||
        cuda->pointer_attributes(2, attributes, data, cuda_address(pointer)) != CUDA_SUCCESS)
        return -1;
    return type == CUDA_MEMORY_TYPE_DEVICE ? ordinal : -1;
}

int cuda_check(const struct cuda *cuda, int result, const char *what, struct error *err)
{
    const char *text = NULL;
    if (result == CUDA_SUCCESS)
        return 0;
    if (cuda->error_text(result, &text) != CUDA_SUCCESS || text == NULL)
        text = "unknown error";
    return error_set(err, "%s: %s (error %d of CUDA)", what, text, result);
}

/* A pointer of a GPU, with its context current in this thread. */
struct visit {
    struct cuda cuda;
    int device; /* -1: it is host memory, and there is nothing to end */
    void *context;
};

/* 1: it has begun. 0: it is host memory. -1: CUDA failed. */
static int visit_begin(struct visit *visit, const void *data, struct error *err)
{
    struct cuda *cuda = &visit->cuda;
    if (data == NULL || cuda_find(cuda, NULL) != 1)
        return 0;
    visit->device = cuda_device_of(cuda, data);
    int result = CUDA_SUCCESS;
    if (visit->device >= 0)
        result = cuda->context_retain(&visit->context, visit->device);
    if (visit->device >= 0 && result == CUDA_SUCCESS) {
        result = cuda->context_push(visit->context);
        if (result == CUDA_SUCCESS)
            return 1;
        cuda->context_release(visit->device);
    }
    int rc = cuda_check(cuda, result, "the context of the GPU", err);
    cuda_forget(cuda);
    return rc;
}

static void visit_end(struct visit *visit)
{
    visit->cuda.context_pop(&visit->context);
    visit->cuda.context_release(visit->device);
    cuda_forget(&visit->cuda);
}

bool cuda_free_if_device(void *data)
{
    struct visit visit;
    int begun = visit_begin(&visit, data, NULL);
    if (begun == 1) {
        visit.cuda.memory_free(cuda_address(data));
        visit_end(&visit);
    }
    return begun != 0;
}

int cuda_move_if_device(void *data, void *to, size_t bytes, void *stream, struct error *err)
{
    struct visit visit;
    int begun = visit_begin(&visit, data, err);
    if (begun != 1)
        return begun;
    const struct cuda *cuda = &visit.cuda;
    int rc = cuda_check(cuda, cuda->copy(cuda_address(to), cuda_address(data), bytes, stream),
                        "cuMemcpyDtoDAsync", err);
    if (rc == 0)
        rc = cuda_check(cuda, cuda->memory_give(cuda_address(data), stream), "cuMemFreeAsync", err);
    visit_end(&visit);
    return rc == 0 ? 1 : -1;
}

/* ---- NCCL ------------------------------------------------------------------------------------ */

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

static int find_functions(struct nccl *nccl, struct error *err)
{
    const char *missing = NULL;
#define FIND(member, symbol, parameters)                                                  \
    if (missing == NULL && !find_function(nccl->library, #symbol, (void *)&nccl->member)) \
        missing = #symbol;
    NCCL_FUNCTION_LIST(FIND)
    FIND(error_text, ncclGetErrorString, )
    FIND(last_error, ncclGetLastError, )
#undef FIND
    if (missing != NULL)
        return error_set(err, "%s does not have %s: install NCCL 2.13 or later", NCCL_LIBRARY,
                         missing);
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
