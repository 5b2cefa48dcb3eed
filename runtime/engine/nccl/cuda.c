/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/cuda.h"

#include <dlfcn.h>
#include <string.h>

static int find_function(void *library, const char *symbol, void *member, struct error *err)
{
    void *found = dlsym(library, symbol);
    if (found == NULL)
        return error_set(err,
                         "%s does not have %s: install a driver for CUDA 11.2 or later to use "
                         "memory of GPUs",
                         CUDA_LIBRARY, symbol);
    memcpy(member, &found, sizeof found);
    return 0;
}

int cuda_find(struct cuda *cuda, struct error *err)
{
    *cuda = (struct cuda){.library = dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_NOLOAD)};
    if (cuda->library == NULL)
        return 0;
#define FIND(member, symbol, parameters)                                          \
    if (find_function(cuda->library, #symbol, (void *)&cuda->member, err) != 0) { \
        cuda_forget(cuda);                                                        \
        return -1;                                                                \
    }
    CUDA_FUNCTION_LIST(FIND)
#undef FIND
    return 1;
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
