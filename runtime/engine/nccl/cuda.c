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

bool cuda_free_if_device(void *data)
{
    struct cuda cuda;
    if (data == NULL || cuda_find(&cuda, NULL) != 1)
        return false;
    int device = cuda_device_of(&cuda, data);
    void *context = NULL;
    if (device >= 0 && cuda.context_retain(&context, device) == CUDA_SUCCESS) {
        if (cuda.context_push(context) == CUDA_SUCCESS) {
            cuda.memory_free(cuda_address(data));
            cuda.context_pop(&context);
        }
        cuda.context_release(device);
    }
    cuda_forget(&cuda);
    return device >= 0;
}
