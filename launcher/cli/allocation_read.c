/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/allocation_read.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "cli/text_file.h"
#include "model/allocation/slurm.h"

#define FILE_MAX ((size_t)64 << 20)

static enum allocation_kind wanted_kind(const struct settings *settings)
{
    switch ((enum set_scheduler)settings->scheduler) {
    case SET_SCHEDULER_SLURM: return ALLOCATION_SLURM;
    case SET_SCHEDULER_PBS: return ALLOCATION_PBS;
    case SET_SCHEDULER_LSF: return ALLOCATION_LSF;
    case SET_SCHEDULER_SGE: return ALLOCATION_SGE;
    case SET_SCHEDULER_KUBERNETES: return ALLOCATION_KUBERNETES;
    case SET_SCHEDULER_AUTO:
    case SET_SCHEDULER_NONE: break;
    }
    return ALLOCATION_NONE;
}

/* `srun hvdrun` with several tasks would start the whole job once for each task. */
static int refuse_twins(char *const *env, struct error *err)
{
    int task = allocation_slurm_twin(env);
    if (task < 0)
        return 0;
    if (task == 0)
        return error_status(err, STATUS_USAGE,
                            "srun started several hvdrun processes, and each would start all "
                            "workers; start hvdrun without srun, or with srun -n1 --overlap (with "
                            "--scheduler none every task is a job of its own)");
    return error_status(err, STATUS_USAGE, "%s", "");
}

static int find_kind(const struct settings *settings, char *const *env, enum allocation_kind *kind,
                     const char **file, struct error *err)
{
    *kind = wanted_kind(settings);
    if (*kind == ALLOCATION_NONE)
        *kind = allocation_detect(env, file);
    else if (!allocation_has(*kind, env, file))
        return error_status(
            err, STATUS_USAGE,
            "%s: hvdrun does not run in a job of %s, which would set %s; start hvdrun in "
            "such a job, or leave the option out",
            settings_place(settings, OPT_scheduler), allocation_name(*kind),
            allocation_needs(*kind));
    return 0;
}

int allocation_read(const struct settings *settings, char *const *env, struct allocation *out,
                    struct error *err)
{
    enum allocation_kind kind = ALLOCATION_NONE;
    const char *file = NULL;
    AUTO_BUF struct buf bytes = BUF_INIT(FILE_MAX);
    if (settings->scheduler == SET_SCHEDULER_NONE)
        return 0;
    if (refuse_twins(env, err) < 0 || find_kind(settings, env, &kind, &file, err) < 0)
        return -1;
    if (file != NULL && text_file_read(file, settings->start_timeout, &bytes, err) < 0)
        return error_wrap(err, "hosts of the %s job (--scheduler none ignores them)",
                          allocation_name(kind));
    return allocation_parse(kind, env, file, file == NULL ? NULL : buf_text(&bytes), bytes.length,
                            out, err);
}
