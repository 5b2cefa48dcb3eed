/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/scontrol.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/allocation/allocation.h"

#define OUTPUT_MAX ((size_t)1 << 20)

struct scontrol {
    struct discovery_program program;
    struct discovery_run *run;
    char *path;
    struct strv argv, env;
    void (*done)(void *context, const struct discovery_result *result);
    void *context;
};

char *scontrol_find(struct error *err)
{
    return child_find("scontrol", getenv("PATH"), NULL, err);
}

void scontrol_cancel(struct scontrol *scontrol)
{
    if (scontrol == NULL)
        return;
    discovery_run_cancel(scontrol->run);
    strv_destroy(&scontrol->argv);
    strv_destroy(&scontrol->env);
    free(scontrol->path);
    free(scontrol);
}

static void over(void *context, const struct discovery_result *result)
{
    struct scontrol *scontrol = context;
    scontrol->run = NULL;
    void (*done)(void *, const struct discovery_result *) = scontrol->done;
    void *whose = scontrol->context;
    scontrol_cancel(scontrol);
    done(whose, result);
}

/* The times that it prints are then the same everywhere (model/allocation/slurm_job.h). */
static void set_environment(struct strv *env)
{
    for (char **one = environ; *one != NULL; one++) {
        if (strncmp(*one, "TZ=", 3) != 0 && strncmp(*one, "SLURM_TIME_FORMAT=", 18) != 0)
            strv_add(env, *one);
    }
    strv_add(env, "TZ=UTC0");
    strv_add(env, "SLURM_TIME_FORMAT=standard");
}

struct scontrol *scontrol_start(struct job *job, const char *const *words, int64_t limit_ms,
                                void (*done)(void *context, const struct discovery_result *result),
                                void *context)
{
    struct scontrol *scontrol = mem_alloc(sizeof(*scontrol));
    *scontrol =
        (struct scontrol){.argv = STRV_INIT, .env = STRV_INIT, .done = done, .context = context};
    scontrol->path = scontrol_find(NULL);
    if (scontrol->path == NULL)
        scontrol->path = mem_strdup("scontrol"); /* starting it says why that cannot be */
    strv_add(&scontrol->argv, "scontrol");
    for (; *words != NULL; words++)
        strv_add(&scontrol->argv, *words);
    strv_add(&scontrol->argv, job->request->allocation->job_id);
    set_environment(&scontrol->env);
    scontrol->program = (struct discovery_program){.loop = job->loop,
                                                   .helpers = job->helpers,
                                                   .log = &job->log,
                                                   .path = scontrol->path,
                                                   .argv = scontrol->argv.items,
                                                   .envp = scontrol->env.items,
                                                   .name = "scontrol",
                                                   .limit = OUTPUT_MAX,
                                                   .limit_ms = limit_ms};
    scontrol->run = discovery_run_start(&scontrol->program, over, scontrol);
    return scontrol;
}
