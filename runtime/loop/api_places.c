/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of hvd.h: places, what was built in. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/load.h"
#include "engine/nccl/library.h"
#include "loop/library.h"

/* -1: the library is not initialized. */
static struct engine_place place(void)
{
    struct engine_place found = {-1, -1, -1, -1, -1, -1};
    struct world *world = library_enter();
    if (world == NULL)
        return found;
    found = *world_place(world);
    library_leave();
    return found;
}

int hvd_rank(void)
{
    return place().rank;
}

int hvd_size(void)
{
    return place().size;
}

int hvd_local_rank(void)
{
    return place().local_rank;
}

int hvd_local_size(void)
{
    return place().local_size;
}

int hvd_cross_rank(void)
{
    return place().cross_rank;
}

int hvd_cross_size(void)
{
    return place().cross_size;
}

int hvd_failure(void)
{
    struct error err = ERROR_INIT;
    struct world *world = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    enum hvd_status status = world_failure(world, &err);
    library_leave();
    return status == HVD_OK ? HVD_OK : (int)library_fail(status, "%s", err.text);
}

bool hvd_is_homogeneous(void)
{
    struct world *world = library_enter();
    if (world == NULL)
        return false;
    bool homogeneous = world_is_homogeneous(world);
    library_leave();
    return homogeneous;
}

int hvd_nccl_version(void)
{
    return nccl_version();
}

bool hvd_engine_built(const char *engine)
{
    if (engine != NULL && strcmp(engine, "nccl") == 0)
        return nccl_version() > 0;
    char *folder AUTO_FREE = engine_folder();
    return engine != NULL && strlen(engine) < 32 && strchr(engine, '/') == NULL &&
           engine_exists(folder, engine);
}

const char *hvd_engine(void)
{
    struct world *world = library_enter();
    if (world == NULL)
        return "";
    const char *name = world_engine(world);
    library_leave();
    return name;
}
