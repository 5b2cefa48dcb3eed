/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "node/descendants.h"
#include "node/mpi_detect.h"

#define LOOKS 3
static const int64_t look_at_ms[LOOKS] = {1000, 5000, 20000};

struct mpi_look {
    const struct mpi_job *job;
    const char *nspace;
    bool (*has_spoken)(const void *context, int index);
    const void *context;
    struct loop_timer *timer;
    int looked;
    bool warned;
    int early; /* index of one that ended well but without MPI_Finalize; -1: none */
};

/* As users count ranks: through all worlds. */
static unsigned name_of(const struct mpi_look *look, int index)
{
    return look->job->prepare->first_seat + look->job->prepare->workers[index]->rank;
}

static enum mpi_kind kind_of(const struct mpi_look *look, int index)
{
    return look->job->kinds[look->job->prepare->workers[index]->app];
}

static void warn_of_kind(const struct mpi_look *look, int index, pid_t pid,
                         const struct mpi_finding *finding)
{
    const Hvdrun__Prepare *prepare = look->job->prepare;
    const Hvdrun__Worker *worker = prepare->workers[index];
    bool chosen = strcmp(prepare->apps[worker->app]->mpi, mpi_kind_name(MPI_AUTO)) == 0;
    const char *given = mpi_kind_name(kind_of(look, index));
    const char *needed = mpi_kind_name(finding->kind);
    char *why AUTO_FREE = chosen ? mem_printf("hvdrun chose --mpi=%s for it, since the program %s",
                                              given, look->job->reasons[worker->app])
                                 : mem_printf("was started with --mpi=%s", given);
    log_warning(&look->job->post->log,
                "rank %u uses MPI (process %d %s) but %s, so most likely each of its processes is "
                "a world of its own; start the job with --mpi=%s",
                name_of(look, index), (int)pid, finding->what, why, needed);
}

/* true: a warning was due. */
static bool look_at(struct mpi_look *look, int index, pid_t pid)
{
    struct mpi_finding finding;
    enum mpi_kind given = kind_of(look, index);
    mpi_detect_process(pid, &finding);
    if (finding.kind == MPI_NONE || finding.kind == given ||
        mpi_process_launched_by_other(pid, given, look->nspace))
        return false;
    warn_of_kind(look, index, pid, &finding);
    return true;
}

/* A clean exit ends nothing, but the others may wait in a collective call for a rank that is gone.
 */
static bool look_for_waiting(const struct mpi_look *look)
{
    for (size_t i = 0; i < look->job->prepare->n_workers && look->early >= 0; i++) {
        if (look->job->ops->pid(look->job->context, (int)i) == 0 ||
            !look->has_spoken(look->context, (int)i))
            continue;
        log_warning(&look->job->post->log,
                    "rank %u has exited without MPI_Finalize; rank %u and others that use MPI may "
                    "wait for it forever",
                    name_of(look, look->early), name_of(look, (int)i));
        return true;
    }
    return false;
}

static void look_around(void *context)
{
    struct mpi_look *look = context;
    size_t count = look->job->prepare->n_workers;
    look->warned = look_for_waiting(look);
    for (size_t i = 0; i < count && !look->warned; i++) {
        pid_t pid = look->job->ops->pid(look->job->context, (int)i);
        if (pid == 0 || look->has_spoken(look->context, (int)i))
            continue;
        look->warned = look_at(look, (int)i, pid);
        pid_t *below AUTO_FREE = NULL;
        size_t below_count = look->warned ? 0 : descendants_list(pid, &below);
        for (size_t j = 0; j < below_count && !look->warned; j++)
            look->warned = look_at(look, (int)i, below[j]);
    }
    look->looked++;
    if (!look->warned && look->looked < LOOKS)
        loop_timer_set(look->timer, look_at_ms[look->looked] - look_at_ms[look->looked - 1]);
}

struct mpi_look *mpi_look_create(struct loop *loop,
                                 bool (*has_spoken)(const void *context, int index),
                                 const void *context)
{
    struct mpi_look *look = mem_alloc(sizeof(*look));
    *look = (struct mpi_look){.has_spoken = has_spoken, .context = context, .early = -1};
    look->timer = loop_timer_create(loop, look_around, look);
    return look;
}

void mpi_look_begin(struct mpi_look *look, const struct mpi_job *job, const char *nspace)
{
    look->job = job;
    look->nspace = nspace == NULL ? "" : nspace;
    loop_timer_set(look->timer, look_at_ms[0]);
}

void mpi_look_left(struct mpi_look *look, int index)
{
    if (look->early >= 0)
        return;
    look->early = index;
    loop_timer_set(look->timer, look_at_ms[0]);
}

void mpi_look_end(struct mpi_look *look)
{
    loop_timer_clear(look->timer);
    look->looked = 0;
    look->warned = false;
    look->early = -1;
}

void mpi_look_destroy(struct mpi_look *look)
{
    if (look == NULL)
        return;
    loop_timer_destroy(look->timer);
    free(look);
}
