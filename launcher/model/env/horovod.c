/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/horovod.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static void put_number(struct strv *out, const char *name, int64_t value)
{
    if (value >= 0)
        strv_printf(out, "%s=%" PRId64, name, value);
}

/* The shortest decimal that reads back as the same number. */
static void put_real(struct strv *out, const char *name, double value)
{
    if (value < 0)
        return;
    char text[40];
    int digits = 1;
    do {
        snprintf(text, sizeof(text), "%.*g", digits++, value);
    } while (digits <= 17 && (strtod(text, NULL) < value || strtod(text, NULL) > value));
    strv_printf(out, "%s=%s", name, text);
}

static void put_text(struct strv *out, const char *name, const char *value)
{
    if (value != NULL)
        strv_printf(out, "%s=%s", name, value);
}

/* `given` is -1 while the option is unset; some variables say the opposite of their option. */
static void put_switch(struct strv *out, const char *name, int given, bool opposite)
{
    if (given >= 0)
        strv_printf(out, "%s=%d", name, (given != 0) != opposite ? 1 : 0);
}

static void put_tuning(const struct settings *s, struct strv *out)
{
    if (s->fusion_threshold_mb >= 0)
        put_number(out, "HOROVOD_FUSION_THRESHOLD", s->fusion_threshold_mb * 1024 * 1024);
    put_real(out, "HOROVOD_CYCLE_TIME", s->cycle_time_ms);
    put_number(out, "HOROVOD_CACHE_CAPACITY", s->cache_capacity);
    put_switch(out, "HOROVOD_HIERARCHICAL_ALLREDUCE", s->hierarchical_allreduce, false);
    put_switch(out, "HOROVOD_HIERARCHICAL_ALLGATHER", s->hierarchical_allgather, false);
    put_switch(out, "HOROVOD_TORUS_ALLREDUCE", s->torus_allreduce, false);
}

/* horovodrun says nothing at all for --no-autotune; an inherited HOROVOD_AUTOTUNE=1 would then stay
 * on against the user's word, so we say 0. */
static void put_autotune(const struct settings *s, struct strv *out)
{
    put_switch(out, "HOROVOD_AUTOTUNE", s->autotune, false);
    if (s->autotune != 1)
        return;
    put_text(out, "HOROVOD_AUTOTUNE_LOG", s->autotune_log_file);
    put_number(out, "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", s->autotune_warmup_samples);
    put_number(out, "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", s->autotune_steps_per_sample);
    put_number(out, "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", s->autotune_bayes_opt_max_samples);
    put_real(out, "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", s->autotune_gaussian_process_noise);
}

static void put_library(const struct settings *s, struct strv *out)
{
    put_switch(out, "HOROVOD_MPI_THREADS_DISABLE", s->mpi_threads_disable, false);
    put_number(out, "HOROVOD_NUM_NCCL_STREAMS", s->num_nccl_streams);
    if (s->tcp) {
        put_text(out, "NCCL_IB_DISABLE", "1");
        /* horovodrun gives mpirun these two as arguments */
        put_text(out, "OMPI_MCA_pml", "ob1");
        put_text(out, "OMPI_MCA_btl", "^openib");
    }
    put_number(out, "HOROVOD_THREAD_AFFINITY", s->thread_affinity);
    put_number(out, "HOROVOD_GLOO_TIMEOUT_SECONDS", s->gloo_timeout_seconds);
}

void horovod_env_build(const struct settings *settings, struct strv *out)
{
    put_tuning(settings, out);
    put_autotune(settings, out);
    if (settings->timeline_filename != NULL) {
        put_text(out, "HOROVOD_TIMELINE", settings->timeline_filename);
        put_switch(out, "HOROVOD_TIMELINE_MARK_CYCLES", settings->timeline_mark_cycles, false);
    }
    put_switch(out, "HOROVOD_STALL_CHECK_DISABLE", settings->stall_check, true);
    put_number(out, "HOROVOD_STALL_CHECK_TIME_SECONDS", settings->stall_check_warning_time_seconds);
    put_number(out, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
               settings->stall_check_shutdown_time_seconds);
    put_library(settings, out);
    char level[OPTION_NAME_MAX];
    if (settings->log_level >= 0 && option_word(OPT_log_level, settings->log_level, level) == 0)
        put_text(out, "HOROVOD_LOG_LEVEL", level);
    put_switch(out, "HOROVOD_LOG_HIDE_TIME", settings->log_with_timestamp, true);
}

void horovod_env_package(const struct settings *settings, const char *modules, struct strv *out)
{
    char word[OPTION_NAME_MAX];
    if (settings->horovod == SET_HOROVOD_NONE)
        return;
    if (option_word(OPT_horovod, settings->horovod, word) == 0)
        put_text(out, "HVDRUN_HOROVOD", word);
    char *folder AUTO_FREE = mem_printf("%s/python", modules);
    put_text(out, HOROVOD_PATH_VARIABLE, folder);
}
