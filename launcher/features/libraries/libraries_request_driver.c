/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun libraries`: answers to clients of the control socket. */
#include <jansson.h>
#include <stdlib.h>

#include "base/mem.h"
#include "driver/control/later.h"
#include "driver/control/request.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "features/libraries/libraries_driver.h"

#define TEXT_MAX ((size_t)1 << 20)

struct request {
    struct control_wait wait;
};

struct libraries_request {
    struct job *job;
    struct control_waits requests;
};

static void answered(void *context, const struct ask *ask)
{
    struct request *request = context;
    struct buf missing AUTO_BUF = BUF_INIT(TEXT_MAX);
    json_t *answer = libraries_json(ask->job);
    if (answer == NULL)
        answer = json_pack("{s:[], s:[]}", "files", "differences");
    ask_missing(ask, &missing);
    json_object_set_new(answer, "missing",
                        missing.length > 0 ? json_text(buf_text(&missing)) : json_null());
    control_wait_answer(&request->wait, answer);
}

/* It answers later. */
static json_t *libraries(void *context, const struct control_asked *asked, struct error *err)
{
    struct job *job = context;
    if (job->ranks.running == 0) {
        error_set(err, "no rank runs");
        return NULL;
    }
    struct request *request = mem_alloc(sizeof(*request));
    control_wait_begin(&job_part(job, libraries_request)->requests, &request->wait, asked->later);
    libraries_ask(job, answered, request);
    return NULL;
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers)
        return 0;
    struct libraries_request *own = mem_alloc(sizeof(*own));
    *own = (struct libraries_request){.job = job};
    job->own[PART_libraries_request] = own;
    return 0;
}

/* Clients that still wait get the answer that the job has ended. */
static void close_part(struct job *job)
{
    struct libraries_request *own = job_part(job, libraries_request);
    while (!LIST_EMPTY(&own->requests)) {
        struct request *request = (struct request *)LIST_FIRST(&own->requests);
        ask_forget(job, request);
        control_wait_answer(&request->wait, NULL);
    }
    free(own);
}

static const struct control_rule requests[] = {{"libraries", libraries}, {NULL}};

const struct driver_part libraries_request_part = {
    .name = "libraries_request", .open = open_part, .close = close_part, .requests = requests};
