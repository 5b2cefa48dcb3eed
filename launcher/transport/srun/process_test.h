/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of process alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "transport/srun/process.h"

struct srun_command {
    const struct srun_options *options; /* of this srun */
    char *const *nodes;                 /* NULL-ended, at least one */
    const struct strv *arguments;       /* of the user, after ours; NULL: none */
    const char *agent_path;
};
void srun_command_argv(const struct srun_command *command, struct strv *argv);

/* What the agents need to know. It goes through the environment, never through argv (D9). */
struct srun_secrets {
    char *const *addresses; /* numeric, best first, NULL-ended */
    int port;
    const char *key;
    const char *job_id;
};

/* `from` without what would change the step, and what belongs to this machine (TMPDIR), with
 * HVDRUN_AGENT_*. */
void srun_command_env(char *const *from, const struct srun_secrets *secrets, struct strv *env);
