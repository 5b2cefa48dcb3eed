/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/evidence_answers.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/job/job_nodes.h"
#include "node/evidence.h"

void evidence_answers_init(struct evidence_answers *answers, int hosts)
{
    *answers = (struct evidence_answers){.host_count = hosts};
    answers->hosts = mem_array((size_t)hosts + 1, sizeof(*answers->hosts));
}

static void clear_host(struct evidence_host *host)
{
    if (host->answer != NULL)
        hvdrun__evidence__free_unpacked(host->answer, NULL);
    if (host->gpus != NULL)
        hvdrun__gpu_healths__free_unpacked(host->gpus, NULL);
    free(host->gpus_missing);
}

void evidence_answers_destroy(struct evidence_answers *answers)
{
    for (int i = 0; i < answers->host_count; i++)
        clear_host(&answers->hosts[i]);
    for (size_t i = 0; i < answers->file_count; i++) {
        free(answers->files[i].name);
        free(answers->files[i].missing);
    }
    free(answers->hosts);
    free(answers->files);
    *answers = (struct evidence_answers){.host_count = 0};
}

void evidence_answers_take(struct evidence_answers *answers, const struct node_link *node,
                           Hvdrun__Evidence *message_take)
{
    if (node->index >= answers->host_count || answers->hosts[node->index].answer != NULL) {
        hvdrun__evidence__free_unpacked(message_take, NULL);
        return;
    }
    answers->hosts[node->index].answer = message_take;
    answers->hosts[node->index].to_come = message_take->files;
}

static void take_gpus(struct evidence_host *host, const Hvdrun__EvidenceFile *message)
{
    if (host->gpus == NULL)
        host->gpus = hvdrun__gpu_healths__unpack(NULL, message->data.len, message->data.data);
    bool expected = host->gpus != NULL && host->gpus->library;
    if (expected && host->gpus_missing == NULL && message->missing[0] != '\0')
        host->gpus_missing = mem_strdup(message->missing);
}

/* Its place in the folder; NULL: it is about no worker of that node. */
static char *file_name(const struct job *job, const struct node_link *node,
                       const Hvdrun__EvidenceFile *message, int *rank)
{
    *rank = -1;
    if (message->kind == EVIDENCE_FILE_RAS)
        return mem_printf("ras_%d.json", node->index);
    if (message->kind != EVIDENCE_FILE_FLIGHT || message->seat >= (uint32_t)job->ranks.size)
        return NULL;
    *rank = job_seat_rank(job, (int)message->seat);
    return *rank < 0 ? NULL : mem_printf("flight_recorder/rank_%d", *rank);
}

static const char *take_file(struct evidence_answers *answers, const struct job *job,
                             const struct node_link *node, const Hvdrun__EvidenceFile *message)
{
    struct evidence_file file = {.node = node->index};
    size_t length = message->data.len;
    bool nothing = length == 0 && message->missing[0] == '\0';
    char *name AUTO_FREE = nothing ? NULL : file_name(job, node, message, &file.rank);
    if (name == NULL)
        return NULL;
    if (length == 0)
        file.missing = mem_strdup(message->missing);
    else if (length > EVIDENCE_FILE_MAX || length > EVIDENCE_DUMPS_MAX - answers->file_bytes)
        file.missing = mem_strdup("the files of this failure are too large in total");
    else
        file.name = mem_strdup(name);
    answers->file_bytes += file.name != NULL ? length : 0;
    answers->files =
        mem_resize_array(answers->files, answers->file_count + 1, sizeof(*answers->files));
    answers->files[answers->file_count++] = file;
    return file.name;
}

const char *evidence_answers_file(struct evidence_answers *answers, const struct job *job,
                                  const struct node_link *node, const Hvdrun__EvidenceFile *message)
{
    bool promised = node->index < answers->host_count && answers->hosts[node->index].to_come > 0;
    if (!promised)
        return NULL;
    answers->hosts[node->index].to_come--;
    if (message->kind != EVIDENCE_FILE_GPUS)
        return take_file(answers, job, node, message);
    take_gpus(&answers->hosts[node->index], message);
    return NULL;
}

bool evidence_answers_complete(const struct evidence_answers *answers, const struct job *job)
{
    for (int i = 0; i < answers->host_count; i++) {
        if (answers->hosts[i].to_come > 0 && node_link_alive(job->nodes[i]))
            return false;
    }
    return true;
}
