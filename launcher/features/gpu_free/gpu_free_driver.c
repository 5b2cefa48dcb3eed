/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --gpu-free: a restart of all workers waits until the memory of the GPUs is free, for processes
 * that have ended can hold it for a while, and others for ever. The agents of the next epoch are
 * asked again and again. After the limit, the restart goes on, and a line names who holds the
 * memory.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/plain.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "features/gpu_free/gpu_free.h"

const char gpu_free_feature[] = "restarts that wait for GPU memory (--gpu-free)";

#define AGAIN_MS 300
#define ANSWER_MS 10000 /* NVIDIA's library can hang */
#define LACKS_MAX 2000

struct gpu_free {
    struct job *job;
    struct gpu_free_limit limit;
    uint32_t epoch;   /* that waits, or has waited; 0: none */
    bool over;        /* it does not wait any more */
    int64_t begun_ms; /* on the clock of the job */
    struct loop_timer *again;
};

static void go_on(struct gpu_free *own)
{
    own->over = true;
    job_advance(own->job);
}

/* What a host says that is about to answer is from the last question at most. */
static void add_lacks(const struct gpu_free *own, const struct ask_answer *answer, struct buf *out)
{
    const Hvdrun__GpusAnswer *message = (const Hvdrun__GpusAnswer *)answer->message;
    if (answer->state != ASK_ANSWERED || message == NULL)
        return;
    Hvdrun__GpuHealths *gpus =
        hvdrun__gpu_healths__unpack(NULL, message->health.len, message->health.data);
    if (gpus == NULL)
        return;
    gpu_free_lacks(gpus, answer->node->host, own->limit.percent, out);
    hvdrun__gpu_healths__free_unpacked(gpus, NULL);
}

static void answered(void *context, const struct ask *ask)
{
    struct gpu_free *own = context;
    struct job *job = own->job;
    struct buf lacks AUTO_BUF = BUF_INIT(LACKS_MAX);
    if (job->state != JOB_RUNNING || own->over)
        return;
    for (size_t i = 0; i < ask->count; i++)
        add_lacks(own, &ask->answers[i], &lacks);
    int64_t waited_ms = job_running_ms(job) - own->begun_ms;
    char *text AUTO_FREE = buf_take(&lacks);
    plain_line(text, '?');
    if (text[0] == '\0') {
        go_on(own);
    } else if (waited_ms >= own->limit.limit_ms) {
        log_warning(&job->log, "the workers restart after %.1f s of --gpu-free, although %s",
                    (double)waited_ms / 1000, text);
        go_on(own);
    } else {
        loop_timer_set(own->again, AGAIN_MS);
    }
}

/* The hosts of the epoch that is planned. Without a python, agents only look. */
static void ask_hosts(void *context)
{
    static const struct question question = {&topic_gpus, NULL, .keep = true};
    struct gpu_free *own = context;
    struct job *job = own->job;
    Hvdrun__GpusRequest request = HVDRUN__GPUS_REQUEST__INIT;
    struct ask *ask = ask_begin(job, &question, ANSWER_MS, answered, own);
    for (int i = 0; i < job->plan->node_count; i++)
        ask_node(ask, job->places[i], &request.base);
}

static bool holds(struct job *job, uint32_t epoch)
{
    struct gpu_free *own = job_part(job, gpu_free);
    if (own == NULL || (own->epoch == epoch && own->over))
        return false;
    if (own->epoch == epoch)
        return true;
    ask_forget(job, own); /* about an epoch that was cancelled */
    own->epoch = epoch;
    own->over = false;
    own->begun_ms = job_running_ms(job);
    loop_timer_set(own->again, 0);
    return true;
}

static int open_part(struct job *job, struct error *err)
{
    struct gpu_free_limit limit;
    if (job->settings->gpu_free == NULL || !job->kind->many_epochs)
        return 0;
    if (gpu_free_parse(job->settings->gpu_free, &limit, err) < 0)
        return -1;
    struct gpu_free *own = MEM_NEW((struct gpu_free){.job = job, .limit = limit});
    own->again = loop_timer_create(job->loop, ask_hosts, own);
    job->own[PART_gpu_free] = own;
    return 0;
}

static void ending(struct job *job)
{
    struct gpu_free *own = job_part(job, gpu_free);
    if (own == NULL)
        return;
    own->over = true;
    loop_timer_clear(own->again);
}

static void close_part(struct job *job)
{
    struct gpu_free *own = job_part(job, gpu_free);
    ask_forget(job, own);
    loop_timer_destroy(own->again);
    free(own);
}

const struct driver_part gpu_free_part = {
    .name = "gpu_free", .open = open_part, .close = close_part, .holds = holds, .ending = ending};
