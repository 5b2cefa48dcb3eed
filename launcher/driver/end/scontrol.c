/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/scontrol.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strv.h"
#include "model/allocation/allocation.h"

#define OUTPUT_MAX ((size_t)1 << 20)

char *scontrol_find(struct error *err)
{
    return child_find("scontrol", getenv("PATH"), NULL, err);
}

/* Its times then have the same format everywhere (model/allocation/slurm_job.h). */
static void set_environment(struct strv *env)
{
    for (char **one = environ; *one != NULL; one++) {
        if (strncmp(*one, "TZ=", 3) != 0 && strncmp(*one, "SLURM_TIME_FORMAT=", 18) != 0)
            strv_add(env, *one);
    }
    strv_add(env, "TZ=UTC0");
    strv_add(env, "SLURM_TIME_FORMAT=standard");
}

struct program *scontrol_start(struct job *job, const char *const *words, int64_t limit_ms,
                               void (*done)(void *context, const struct program_result *result),
                               void *context)
{
    struct strv argv AUTO_STRV = STRV_INIT, env AUTO_STRV = STRV_INIT;
    strv_add(&argv, "scontrol");
    for (; *words != NULL; words++)
        strv_add(&argv, *words);
    strv_add(&argv, job->request->allocation->job_id);
    set_environment(&env);
    const struct program_spec spec = {.loop = job->loop,
                                      .helpers = job_part(job, helpers),
                                      .log = &job->log,
                                      .argv = argv.items,
                                      .envp = env.items,
                                      .output_max = OUTPUT_MAX,
                                      .time_max_ms = limit_ms};
    return program_start(&spec, done, context);
}
