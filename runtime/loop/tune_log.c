/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/tune_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NS_PER_MS 1e6
#define BYTES_PER_MIB 1048576.0

struct tune_log {
    FILE *file;
    bool cache_enabled;
};

struct tune_log *tune_log_open(const char *path, bool cache_enabled)
{
    FILE *file = path == NULL ? NULL : fopen(path, "we");
    if (file == NULL) {
        if (path != NULL)
            fprintf(stderr, "libhvd: warning: cannot write the autotune log '%s': %s\n", path,
                    strerror(errno));
        return NULL;
    }
    struct tune_log *log = mem_alloc(sizeof *log);
    *log = (struct tune_log){file, cache_enabled};
    fputs("hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
          "cycle_time_ms,tensor_fusion_threshold,score\n",
          file);
    fflush(file);
    return log;
}

void tune_log_close(struct tune_log *log)
{
    if (log == NULL)
        return;
    fclose(log->file);
    free(log);
}

/* The three algorithms before the cache do not exist here. Horovod has the blank, too. */
static void row(const struct tune_log *log, const struct tune_point *point, double score)
{
    fprintf(log->file, "0,0,0, %d,%g,%g,%g\n", log->cache_enabled,
            (double)point->cycle_ns / NS_PER_MS, (double)point->threshold / BYTES_PER_MIB, score);
}

void tune_log_row(struct tune_log *log, const struct tuning *tuning)
{
    if (log == NULL)
        return;
    row(log, &tuning->tried, tuning->score);
    if (tuning->settled)
        row(log, &tuning->next, tuning->best_score);
    fflush(log->file);
}
