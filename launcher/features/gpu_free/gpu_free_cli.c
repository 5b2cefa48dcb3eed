/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/features.h"
#include "features/gpu_free/gpu_free.h"

/* Checks --gpu-free before anything starts. */
int gpu_free_check(const struct settings *settings, struct error *err)
{
    struct gpu_free_limit limit;
    if (settings->gpu_free == NULL || gpu_free_parse(settings->gpu_free, &limit, err) == 0)
        return 0;
    return error_wrap(err, "%s", settings_place(settings, OPT_gpu_free));
}
