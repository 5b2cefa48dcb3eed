/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/choose.h"

#include <strings.h>

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
