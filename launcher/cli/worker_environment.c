/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/worker_environment.h"

#include <unistd.h>

#include "model/env/horovod.h"
#include "model/env/scrub.h"

static void inherit(const struct settings *settings, bool same_host, struct strv *out)
{
    env_scrub(environ, same_host, settings->no_env, out);
    if (settings->keep_scheduler_env)
        env_scrub_scheduler(environ, out);
}

void worker_environment_fill(const struct settings *settings, const char *module_dir,
                             struct worker_environment *env)
{
    inherit(settings, true, &env->base);
    inherit(settings, false, &env->away);
    horovod_env_build(settings, &env->knobs);
    horovod_env_package(settings, module_dir, &env->knobs);
}

void worker_environment_clear(struct worker_environment *env)
{
    strv_destroy(&env->base);
    strv_destroy(&env->away);
    strv_destroy(&env->knobs);
}
