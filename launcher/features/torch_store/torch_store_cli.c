/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/features.h"

/* Checks --torch-store before anything starts. */
int torch_store_check(const struct settings *settings, struct error *err)
{
    bool given = strv_env_get(&settings->env, "MASTER_ADDR") != NULL ||
                 strv_env_get(&settings->env, "MASTER_PORT") != NULL;
    if (settings->torch_store != SET_TORCH_STORE_AGENT || !given)
        return 0;
    return error_usage(err,
                       "%s: an agent serves the store where hvdrun chooses; leave MASTER_ADDR and "
                       "MASTER_PORT out of -x (--master-port is possible)",
                       settings_place(settings, OPT_torch_store));
}
