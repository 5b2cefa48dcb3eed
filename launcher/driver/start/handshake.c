/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/start.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/run/run.h"
#include "driver/tell/events.h"
#include "wire/frame.h"

char *handshake_version_problem(const struct node_link *node)
{
    if (strcmp(node->hello->version, HVDRUN_VERSION) == 0)
        return NULL;
    return mem_printf(
        "%s runs hvdrun %s, but this machine runs %s; install the same version on both", node->host,
        node->hello->version, HVDRUN_VERSION);
}

char *handshake_problem(const struct node_link *node)
{
    char *problem = handshake_version_problem(node);
    if (problem == NULL && node->hello->problem[0] != '\0')
        problem = mem_strdup(node->hello->problem);
    return problem;
}

/* Copies of one line that are not the same: the first words that differ. */
static void compare_copy(const struct job *job, const struct node_link *node)
{
    const char *own = job->request->copy, *line = node->hello->line;
    size_t at = 0;
    if (own == NULL || line[0] == '\0' || strcmp(own, line) == 0)
        return;
    while (own[at] == line[at])
        at++;
    while (at > 0 && own[at - 1] != ' ')
        at--;
    log_warning(&job->log, "%s: the line there has '%s' where this one has '%s', which counts",
                node->host, plain_show(line + at, strlen(line + at)).text,
                plain_show(own + at, strlen(own + at)).text);
}

void handshake_welcome(struct job *job, struct node_link *node)
{
    Hvdrun__Welcome welcome = HVDRUN__WELCOME__INIT;
    welcome.protocol = FRAME_VERSION;
    welcome.version = (char *)HVDRUN_VERSION;
    welcome.job_id = (char *)job->request->job_id;
    welcome.node = (uint32_t)node->index;
    welcome.log_level = (uint32_t)job->log.level;
    welcome.node_timeout_ms = (uint32_t)node->liveness.lost_ms;
    welcome.grace_ms = (uint32_t)teardown_grace(job, GRACE_AFTER_FAILURE_MS);
    welcome.drain_ms = (uint32_t)job->settings->drain_timeout;
    KIND_TELL(job, welcome, &welcome);
    node_link_send(node, FRAME_WELCOME, 0, &welcome.base);
    compare_copy(job, node);

    Hvdrun__Credit credit = HVDRUN__CREDIT__INIT;
    credit.bytes = node->credit.granted;
    node_link_send(node, FRAME_OUTPUT_CREDIT, 0, &credit.base);

    node->hello_ns = clock_mono_ns();
    events_node(job, "agent_up", node, NULL);
    log_info(&job->log, "%s: agent %u is up (%u CPUs allowed)", node->host, node->hello->pid,
             node->hello->cpus_allowed);
}

void handshake_forget_ports(struct job *job)
{
    free(job->ports.master_addr);
    job->ports = (struct job_ports){.master_addr = NULL};
    PARTS_TELL(job, forget);
}

void handshake_take_ready(struct job *job, const struct node_link *node, const Hvdrun__Ready *ready)
{
    if (ready->master_port != 0 && job->ports.master_addr == NULL) {
        job->ports.master_port = ready->master_port;
        job->ports.jax_port = ready->jax_port;
        job->ports.master_addr =
            mem_strdup(ready->address[0] != '\0' ? ready->address : "127.0.0.1");
    }
    PARTS_TELL(job, ready, node, ready);
    if (ready->interface[0] != '\0')
        log_info(&job->log, "%s: workers use %s (%s)", node->host, ready->interface,
                 ready->address);
    for (size_t i = 0; i < ready->n_mpi; i++)
        log_info(&job->log, "%s: %s", node->host, ready->mpi[i]);
    for (size_t i = 0; i < ready->n_bindings; i++)
        log_notice(&job->log, "%s: %s", node->host, ready->bindings[i]);
}

void handshake_send_start(const struct job *job, struct node_link *node, uint32_t epoch)
{
    Hvdrun__Start message = HVDRUN__START__INIT;
    message.master_addr =
        job->ports.master_addr == NULL ? (char *)"127.0.0.1" : job->ports.master_addr;
    message.master_port = job->ports.master_port;
    message.jax_port = job->ports.jax_port;
    PARTS_TELL(job, start, &message);
    node->state = NODE_RUNNING;
    node_link_send(node, FRAME_START, epoch, &message.base);
}

void handshake_running(struct job *job)
{
    job->state = JOB_RUNNING;
    job->times.started_ns = clock_mono_ns();
    events_job(job, "job_running");
    time_limit_begin(job);
}
