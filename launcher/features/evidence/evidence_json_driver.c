/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence_json_driver.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "driver/tell/json_text.h"
#include "driver/tell/report.h"
#include "model/env/differ.h"
#include "model/usage/gpu_words.h"
#include "wire/control.pb-c.h"

/* The GPUs of a host after a failure, as JSON. What is not known has no key. */

#define UNKNOWN UINT64_MAX /* a count of errors */

static json_t *reasons_json(uint64_t bits)
{
    json_t *list = json_array();
    for (int i = 0; clock_reason_name(i) != NULL; i++) {
        if (bits & clock_reason_bit(i))
            json_array_append_new(list, json_string(clock_reason_name(i)));
    }
    return list;
}

static void set_count(json_t *object, const char *key, uint64_t count)
{
    if (count != UNKNOWN)
        json_object_set_new(object, key,
                            json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count));
}

static json_t *counts_json(const uint64_t *counts)
{
    json_t *object = json_object();
    set_count(object, "volatile", counts[0]);
    set_count(object, "aggregate", counts[1]);
    return object;
}

static json_t *ecc_json(const uint64_t *counts)
{
    json_t *object = json_object();
    json_object_set_new(object, "corrected", counts_json(counts));
    json_object_set_new(object, "uncorrected", counts_json(counts + 2));
    return object;
}

static json_t *rows_json(const Hvdrun__GpuHealth *gpu)
{
    json_t *object = json_object();
    json_object_set_new(object, "corrected", json_integer(gpu->remapped_rows[0]));
    json_object_set_new(object, "uncorrected", json_integer(gpu->remapped_rows[1]));
    json_object_set_new(object, "pending", json_boolean(gpu->remapping_pending));
    json_object_set_new(object, "failed", json_boolean(gpu->remapping_failed));
    return object;
}

static json_t *gpu_json(const Hvdrun__GpuHealth *gpu)
{
    json_t *object = json_object();
    const char *trouble = gpu_trouble_text((int)gpu->trouble);
    json_object_set_new(object, "index", json_integer(gpu->index));
    if (gpu->uuid[0] != '\0')
        json_object_set_new(object, "uuid", json_text(gpu->uuid));
    if (gpu->pci[0] != '\0')
        json_object_set_new(object, "pci", json_text(gpu->pci));
    if (trouble != NULL)
        json_object_set_new(object, "trouble", json_string(trouble));
    if (gpu->has_temperature)
        json_object_set_new(object, "temperature_celsius", json_integer(gpu->celsius));
    if (gpu->has_reasons)
        json_object_set_new(object, "clock_reasons", reasons_json(gpu->reasons));
    if (gpu->n_ecc_errors == 4)
        json_object_set_new(object, "ecc_errors", ecc_json(gpu->ecc_errors));
    if (gpu->n_remapped_rows == 2)
        json_object_set_new(object, "remapped_rows", rows_json(gpu));
    return object;
}

/* An array. The caller owns it. */
static json_t *gpu_health_json(const Hvdrun__GpuHealths *message)
{
    json_t *list = json_array();
    for (size_t i = 0; i < message->n_gpus; i++)
        json_array_append_new(list, gpu_json(message->gpus[i]));
    return list;
}

#define VERSION 1

static const char *const kinds[] = {
    [INCIDENT_FAILURE] = "failure", [INCIDENT_HANG] = "hang", [INCIDENT_TIMEOUT] = "timeout"};

static json_t *rank_json(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(job_seat_rank(job, seat)));
    json_object_set_new(object, "host", json_text(job_seat_host(job, seat)));
    json_object_set_new(object, "pid", json_integer(record->pid));
    json_object_set_new(object, "state", json_string(rank_state_name(record->state)));
    if (record->state >= RANK_EXITED) {
        json_object_set_new(object, record->signaled ? "signal" : "exit_code",
                            json_integer(record->code));
        json_object_set_new(object, "ended", json_wall_time(job, record->ended_ns));
        json_object_set_new(object, "by_hvdrun", json_boolean(record->ended_by_us));
        json_object_set_new(object, "out_of_memory", json_boolean(record->oom));
        json_object_set_new(object, "core_dumped", json_boolean(record->core));
        if (rank_end_requester(record) != NULL)
            json_object_set_new(object, "signal_by", json_text(rank_end_requester(record)));
    }
    json_object_set_new(object, "last_output", json_wall_time(job, record->output_ns));
    return object;
}

static json_t *ranks_json(const struct job *job)
{
    json_t *list = json_array();
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].epoch != 0 && json_array_size(list) < EVIDENCE_RANKS_MAX)
            json_array_append_new(list, rank_json(job, seat));
    }
    return list;
}

static void add_gpus(json_t *object, const struct evidence_host *host)
{
    if (host->gpus != NULL && host->gpus->n_gpus > 0)
        json_object_set_new(object, "gpus", gpu_health_json(host->gpus));
    if (host->gpus_missing != NULL)
        json_object_set_new(object, "gpus_missing", json_text(host->gpus_missing));
}

/* The end of a text, from the beginning of a line on, if there is no room for all of it. */
static json_t *text_within(const char *text, size_t *room)
{
    size_t length = strlen(text);
    if (length > *room) {
        const char *line = strchr(text + length - *room, '\n');
        text = line == NULL ? "" : line + 1;
        length = strlen(text);
    }
    *room -= length;
    return json_text(text);
}

static json_t *hosts_json(const struct job *job, const struct evidence_facts *facts)
{
    json_t *list = json_array();
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        size_t room = EVIDENCE_HOSTS_BYTES / (size_t)job->node_count;
        const struct evidence_host none = {.answer = NULL};
        const struct evidence_host *host = i < facts->host_count ? &facts->hosts[i] : &none;
        const Hvdrun__Evidence *answer = host->answer;
        json_t *object = json_object();
        json_object_set_new(object, "host", json_text(node->host));
        json_object_set_new(object, "state", json_string(node_state_name(node->state)));
        json_object_set_new(object, "answered", json_boolean(answer != NULL));
        for (size_t j = 0; answer != NULL && j < answer->n_items; j++)
            json_object_set_new(object, answer->items[j]->name,
                                text_within(answer->items[j]->text, &room));
        add_gpus(object, host);
        for (size_t j = 0; j < facts->file_count; j++) {
            const struct evidence_file *file = &facts->files[j];
            if (file->rank < 0 && file->node == i && file->name != NULL)
                json_object_set_new(object, "ras", json_text(file->name));
        }
        json_array_append_new(list, object);
    }
    return list;
}

/* What PyTorch's flight recorder has written for each rank. */
static json_t *flights_json(const struct job *job, const struct evidence_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->file_count; i++) {
        const struct evidence_file *file = &facts->files[i];
        if (file->rank < 0)
            continue;
        json_t *object = json_object();
        json_object_set_new(object, "rank", json_integer(file->rank));
        json_object_set_new(object, "host", json_text(job->nodes[file->node]->host));
        json_object_set_new(object, file->name != NULL ? "file" : "missing",
                            json_text(file->name != NULL ? file->name : file->missing));
        json_array_append_new(list, object);
    }
    return list;
}

struct differences {
    json_t *root;
    size_t room;
};

static void add_value(void *context, const char *name, const char *host, const char *value)
{
    struct differences *differences = context;
    json_t *values = json_object_get(differences->root, name);
    size_t cost = strlen(host) + (value != NULL ? strlen(value) : 0);
    cost += values == NULL ? strlen(name) : 0;
    if (cost > differences->room) {
        differences->room = 0; /* so the next ones are no puzzle */
        return;
    }
    differences->room -= cost;
    if (values == NULL) {
        json_object_set_new(differences->root, name, json_object());
        values = json_object_get(differences->root, name);
    }
    json_object_set_new(values, host, value != NULL ? json_text(value) : json_null());
}

static json_t *environment_json(const struct job *job, const struct evidence_facts *facts)
{
    size_t count = 0;
    struct differences differences = {json_object(), EVIDENCE_ENVIRONMENT_BYTES};
    struct env_of_host *hosts AUTO_FREE = mem_array((size_t)job->node_count + 1, sizeof(*hosts));
    struct strv *envs AUTO_FREE = mem_array((size_t)job->node_count + 1, sizeof(*envs));
    for (int i = 0; i < job->node_count && i < facts->host_count; i++) {
        const Hvdrun__Evidence *answer = facts->hosts[i].answer;
        if (answer == NULL || answer->n_environment == 0)
            continue;
        envs[count] = (struct strv){.items = answer->environment, .count = answer->n_environment};
        hosts[count] = (struct env_of_host){job->nodes[i]->host, &envs[count]};
        count++;
    }
    if (count > 1)
        env_differ(hosts, count, add_value, &differences);
    return differences.root;
}

/* The caller frees it. */
static char *dump_take(json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
    json_decref(root);
    char *whole = mem_printf("%s\n", text == NULL ? "{}" : text);
    free(text);
    return whole;
}

char *evidence_json_report(const struct job *job)
{
    json_t *root = report_object(job, &job->verdict, true);
    json_object_del(json_object_get(root, "job"), "argv");
    return dump_take(root);
}

char *evidence_json_facts(const struct job *job, const struct evidence_facts *facts)
{
    json_t *root = json_object();
    json_object_set_new(root, "version", json_integer(VERSION));
    json_object_set_new(root, "job", json_text(job->request->job_id));
    json_object_set_new(root, "time", json_real((double)(facts->when_ns / 1000) / 1e6));
    json_object_set_new(root, "kind", json_string(kinds[facts->kind]));
    json_object_set_new(root, "text", json_text(facts->text));
    json_object_set_new(root, "rank", facts->rank >= 0 ? json_integer(facts->rank) : json_null());
    json_object_set_new(root, "rank_by", facts->by_nccl ? json_string("nccl") : json_null());
    json_object_set_new(root, "epoch", json_integer(facts->epoch));
    json_object_set_new(root, "size", json_integer(job->plan->size));
    json_object_set_new(root, "ranks", ranks_json(job));
    json_object_set_new(root, "hosts", hosts_json(job, facts));
    json_object_set_new(root, "flight_recorder", flights_json(job, facts));
    json_object_set_new(root, "environment", environment_json(job, facts));
    return dump_take(root);
}

void evidence_json_record(const struct job *job, const struct strv *paths, json_t *end)
{
    json_t *list = json_array();
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        char *whole AUTO_FREE =
            path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", job->request->wdir, path);
        json_array_append_new(list, json_text(whole));
    }
    if (paths->count > 0)
        json_object_set(end, "evidence", list);
    json_decref(list);
}
