/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/gpus_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/ask.h"
#include "driver/job/job_nodes.h"
#include "driver/start/machines.h"

struct check_gpus {
    struct job *job;
    struct check_result *result;
    void (*done)(void *context);
    void *context;
};

static void take(struct check_host *host, const Hvdrun__GpusAnswer *answer)
{
    host->gpus = hvdrun__gpu_healths__unpack(NULL, answer->health.len, answer->health.data);
    if (host->gpus == NULL)
        host->gpus_missing = mem_strdup("the answer of its agent cannot be read");
    else if (answer->missing[0] != '\0')
        host->gpus_missing = mem_strdup(answer->missing);
    gpu_test_read((const char *)answer->test.data, answer->test.len, &host->gpu_test);
    if (answer->test_problem[0] != '\0')
        host->gpu_test_problem = mem_strdup(answer->test_problem);
}

static void answered(void *context, const struct ask *ask)
{
    struct check_gpus *gpus = context;
    for (size_t i = 0; i < ask->count; i++) {
        const struct ask_answer *answer = &ask->answers[i];
        struct check_host *host = &gpus->result->hosts[answer->node->index];
        if (answer->state == ASK_ANSWERED && answer->message != NULL)
            take(host, (const Hvdrun__GpusAnswer *)answer->message);
        else if (answer->state == ASK_OWES)
            host->gpus_missing = mem_strdup("its agent did not answer in time");
    }
    gpus->done(gpus->context);
}

/* Two tests on one machine at once would disturb each other. */
static void ask(struct check_gpus *gpus, const char *python)
{
    static const struct question question = {&topic_gpus, NULL, .keep = true};
    struct check_result *result = gpus->result;
    size_t count = (size_t)result->count;
    struct machine *machines AUTO_FREE = mem_array(count, sizeof(*machines));
    int *first AUTO_FREE = mem_array(count, sizeof(*first));
    Hvdrun__GpusRequest request = HVDRUN__GPUS_REQUEST__INIT;
    request.python = (char *)python;
    struct ask *ask =
        ask_begin(gpus->job, &question, GPU_FACTS_MS + GPU_TEST_MS + GPU_ANSWER_MS, answered, gpus);
    for (int i = 0; i < result->count; i++)
        machines[i] = machine_of(result->hosts[i].why == NULL ? result->hosts[i].hello : NULL);
    machine_find_first(machines, result->count, first);
    for (int i = 0; i < result->count; i++) {
        if (first[i] == i && result->hosts[i].why == NULL && gpus->job->nodes[i]->state == NODE_UP)
            ask_node(ask, gpus->job->nodes[i], &request.base);
    }
}

struct check_gpus *check_gpus_begin(struct job *job, struct check_result *result,
                                    const char *python, void (*done)(void *context), void *context)
{
    struct check_gpus *gpus = mem_alloc(sizeof(*gpus));
    *gpus = (struct check_gpus){.job = job, .result = result, .done = done, .context = context};
    ask(gpus, python);
    return gpus;
}

void check_gpus_destroy(struct check_gpus *gpus)
{
    if (gpus == NULL)
        return;
    ask_forget(gpus->job, gpus);
    free(gpus);
}
