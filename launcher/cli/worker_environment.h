/* SPDX-License-Identifier: Apache-2.0 */
/* What workers get of our environment and of the options: see model/env/scrub.h and horovod.h. */
#pragma once

#include "base/strv.h"
#include "model/settings/settings.h"

struct worker_environment {
    struct strv base;  /* for workers of this machine */
    struct strv away;  /* for workers of other machines */
    struct strv knobs; /* HOROVOD_* of options */
};

#define AUTO_WORKER_ENVIRONMENT __attribute__((cleanup(worker_environment_clear)))

/* `env` is all zero before. `module_dir`: of hvdrun. */
void worker_environment_fill(const struct settings *settings, const char *module_dir,
                             struct worker_environment *env);
void worker_environment_clear(struct worker_environment *env);
