/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/knobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "loop/knobs_test.h"

enum { TEXT_MAX = 1 << 20, VALUE_SHOWN = 200 };
#define MS_NS 1000000
#define MIB_BYTES 1048576.0
#define SECOND_NS ((int64_t)1000000000)
#define CYCLE_MS_MAX 60000
#define CAPACITY_MAX (1 << 20)
#define SECONDS_MAX 10000000
#define SAMPLES_MAX 1000000000

static const char cycle[] = "HOROVOD_CYCLE_TIME", threshold[] = "HOROVOD_FUSION_THRESHOLD",
                  capacity[] = "HOROVOD_CACHE_CAPACITY", no_check[] = "HOROVOD_STALL_CHECK_DISABLE",
                  warn_seconds[] = "HOROVOD_STALL_CHECK_TIME_SECONDS",
                  give_up_seconds[] = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                  autotune[] = "HOROVOD_AUTOTUNE", tune_log[] = "HOROVOD_AUTOTUNE_LOG",
                  warm_up[] = "HOROVOD_AUTOTUNE_WARMUP_SAMPLES",
                  sample_steps[] = "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE",
                  points[] = "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
                  at_launch[] = "HOROVOD_ENABLE_ASYNC_COMPLETION";

static int read_cycle(setup_get *get, struct knobs *knobs, struct error *err)
{
    const char *text = setup_value(get, cycle);
    double ms = 1;
    if (text != NULL && parse_double(text, 0, CYCLE_MS_MAX, &ms, err) != 0)
        return error_wrap(err, "%s", cycle);
    knobs->cycle_ns = (int64_t)(ms * MS_NS);
    return 0;
}

static int read_tuner(setup_get *get, struct knobs *knobs, struct error *err)
{
    int64_t on = 0, rounds = 3, steps = 10, most = 20;
    if (setup_number(get, autotune, 0, INT32_MAX, &on, err) != 0 ||
        setup_number(get, warm_up, 0, SAMPLES_MAX, &rounds, err) != 0 ||
        setup_number(get, sample_steps, 0, SAMPLES_MAX, &steps, err) != 0 ||
        setup_number(get, points, 0, SAMPLES_MAX, &most, err) != 0)
        return -1;
    knobs->tuner = (struct tuner_setup){.on = on > 0,
                                        .threshold_fixed = setup_value(get, threshold) != NULL,
                                        .cycle_fixed = setup_value(get, cycle) != NULL,
                                        .warm_up = (int)rounds,
                                        .steps = steps < 1 ? 1 : (int)steps,
                                        .points = most < 1 ? 1 : (int)most};
    knobs->tune_log = setup_value(get, tune_log);
    return 0;
}

enum hvd_status knobs_read(struct knobs *knobs, setup_get *get, struct error *err)
{
    int64_t bytes = (int64_t)128 << 20, tensors = 1024, off = 0, warn_s = 60, give_up_s = 0;
    int64_t early = 0;
    if (read_cycle(get, knobs, err) != 0 || read_tuner(get, knobs, err) != 0 ||
        setup_number(get, threshold, 0, INT64_MAX, &bytes, err) != 0 ||
        setup_number(get, capacity, 0, CAPACITY_MAX, &tensors, err) != 0 ||
        setup_number(get, no_check, 0, 1, &off, err) != 0 ||
        setup_number(get, warn_seconds, 0, SECONDS_MAX, &warn_s, err) != 0 ||
        setup_number(get, give_up_seconds, 0, SECONDS_MAX, &give_up_s, err) != 0 ||
        setup_number(get, at_launch, 0, INT32_MAX, &early, err) != 0)
        return HVD_ERR_ARGUMENT;
    if (off == 0 && give_up_s > 0 && give_up_s < warn_s) {
        error_set(err, "%s is %lld, and must be 0 or at least %s, which is %lld", give_up_seconds,
                  (long long)give_up_s, warn_seconds, (long long)warn_s);
        return HVD_ERR_ARGUMENT;
    }
    knobs->threshold = (size_t)bytes;
    knobs->capacity = (size_t)tensors;
    knobs->warn_ns = off != 0 ? 0 : warn_s * SECOND_NS;
    knobs->completes_at_launch = early > 0;
    knobs->give_up_ns = off != 0 ? 0 : give_up_s * SECOND_NS;
    return HVD_OK;
}

/* ---- What all ranks must agree on ------------------------------------------------------------ */

void settings_add(struct buf *settings, const char *name, const char *value)
{
    put_text(settings, name);
    put_text(settings, value);
}

static int compare_next(struct reader *own, struct reader *other, int rank, struct error *err)
{
    char *name AUTO_FREE = get_text(own, TEXT_MAX), *value AUTO_FREE = get_text(own, TEXT_MAX);
    char *its_name AUTO_FREE = get_text(other, TEXT_MAX);
    char *its_value AUTO_FREE = get_text(other, TEXT_MAX);
    if (other->bad || own->bad || strcmp(name, its_name) != 0)
        return error_set(err, "rank %d has another version of libhvd than rank 0", rank);
    if (strcmp(value, its_value) == 0)
        return 0;
    return error_set(err,
                     "%s is '%.*s' on rank 0, and '%.*s' on rank %d: it must be the same on all "
                     "ranks",
                     name, VALUE_SHOWN, value, VALUE_SHOWN, its_value, rank);
}

int settings_compare(const struct buf *own, int rank, const void *bytes, size_t length,
                     struct error *err)
{
    struct reader in = {(const unsigned char *)buf_text(own), own->length, false};
    struct reader other = {bytes, length, false};
    while (in.left > 0)
        if (compare_next(&in, &other, rank, err) != 0)
            return -1;
    return other.left == 0
               ? 0
               : error_set(err, "rank %d has another version of libhvd than rank 0", rank);
}

enum hvd_status knobs_agree(const struct message_set *set, const struct buf *settings,
                            struct error *err)
{
    AUTO_BUF struct buf first = BUF_INIT(CORE_MESSAGE_MAX);
    struct error difference = ERROR_INIT;
    uint64_t length = settings->length;
    int failed;
    enum hvd_status status = messages_from_root(set, &length, sizeof length, err);
    if (status != HVD_OK)
        return status;
    char *room = buf_reserve(&first, (size_t)length);
    if (room == NULL) {
        error_set(err, "the settings of rank 0 have %llu bytes", (unsigned long long)length);
        return HVD_ERR_ENGINE;
    }
    if (set->rank == 0)
        memcpy(room, buf_text(settings), (size_t)length);
    status = messages_from_root(set, room, (size_t)length, err);
    if (status != HVD_OK)
        return status;
    buf_commit(&first, (size_t)length);
    settings_compare(&first, set->rank, buf_text(settings), settings->length, &difference);
    status = messages_agree(set, difference.text, &failed, err);
    return status == HVD_OK && failed >= 0 ? HVD_ERR_MISMATCH : status;
}

static void add_number(struct buf *settings, const char *name, int64_t value)
{
    char *text AUTO_FREE = mem_printf("%lld", (long long)value);
    settings_add(settings, name, text);
}

void knobs_add(const struct knobs *knobs, struct buf *settings)
{
    char *ms AUTO_FREE = mem_printf("%g", (double)knobs->cycle_ns / MS_NS);
    settings_add(settings, cycle, ms);
    add_number(settings, threshold, (int64_t)knobs->threshold);
    add_number(settings, capacity, (int64_t)knobs->capacity);
}

/* ---- The log of autotune --------------------------------------------------------------------- */

FILE *tune_log_open(const char *path)
{
    FILE *log = path == NULL ? NULL : fopen(path, "we");
    if (log == NULL) {
        if (path != NULL)
            fprintf(stderr, "libhvd: warning: cannot write the autotune log '%s': %s\n", path,
                    strerror(errno));
        return NULL;
    }
    fputs("hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
          "cycle_time_ms,tensor_fusion_threshold,score\n",
          log);
    fflush(log);
    return log;
}

/* The three algorithms before the cache do not exist here. Horovod has the blank, too. */
static void row(FILE *log, const struct tune_point *point, double score, bool cached)
{
    fprintf(log, "0,0,0, %d,%g,%g,%g\n", cached, (double)point->cycle_ns / MS_NS,
            (double)point->threshold / MIB_BYTES, score);
}

void tune_log_row(FILE *log, const struct tuning *tuning, bool cached)
{
    if (log == NULL)
        return;
    row(log, &tuning->tried, tuning->score, cached);
    if (tuning->settled)
        row(log, &tuning->next, tuning->best_score, cached);
    fflush(log);
}
