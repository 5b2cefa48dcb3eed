/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nvml.h"

#include <dlfcn.h>
#include <string.h>

static void *open_library(struct error *err)
{
    void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        return library;
    const char *why = dlerror();
    error_set(err, "there is no driver of NVIDIA (%s)", why != NULL ? why : NVML_LIBRARY);
    return dlopen(NVML_LIBRARY_WSL, RTLD_NOW | RTLD_LOCAL);
}

static void find_function(void *library, const char *symbol, void *member)
{
    void *found = dlsym(library, symbol);
    memcpy(member, &found, sizeof(found));
}

int nvml_load(struct nvml *nvml, struct error *err)
{
    *nvml = (struct nvml){.library = open_library(err)};
    if (nvml->library == NULL)
        return -1;
#define FIND(member, symbol, parameters) \
    find_function(nvml->library, #symbol, (void *)&nvml->member);
    NVML_FUNCTION_LIST(FIND)
#undef FIND
    if (nvml->start == NULL || nvml->count == NULL || nvml->device == NULL)
        return error_set(err, "%s is too old", NVML_LIBRARY);
    return 0;
}

int nvml_start(const struct nvml *nvml, struct error *err)
{
    int result = nvml->start();
    return result == NVML_SUCCESS
               ? 0
               : error_set(err, "%s does not start: error %d", NVML_LIBRARY, result);
}

int nvml_open(struct nvml *nvml, struct error *err)
{
    return nvml_load(nvml, err) < 0 ? -1 : nvml_start(nvml, err);
}

bool nvml_is_trouble(int result)
{
    return result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED;
}
