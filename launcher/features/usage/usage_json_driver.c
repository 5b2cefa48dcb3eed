/* SPDX-License-Identifier: Apache-2.0 */
#include "features/usage/usage_driver.h"

#include <jansson.h>
#include <math.h>

#include "base/clock.h"
#include "driver/control/request.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"

static void set_bytes(json_t *object, const char *key, uint64_t bytes)
{
    json_object_set_new(object, key,
                        json_integer(bytes > INT64_MAX ? INT64_MAX : (json_int_t)bytes));
}

static json_t *pressure_json(const struct host_sample *sample)
{
    const struct {
        const char *key;
        const struct host_pressure *pressure;
    } parts[] = {{"cpu", &sample->cpu}, {"memory", &sample->memory}, {"io", &sample->io}};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].pressure->known)
            json_object_set_new(object, parts[i].key, json_real(parts[i].pressure->some_percent));
    }
    return object;
}

/* NAN: not known, and no key. */
static void set_known(json_t *object, const char *key, double value)
{
    if (!isnan(value))
        json_object_set_new(object, key, json_real(value));
}

static void set_known_bytes(json_t *object, const char *key, double bytes)
{
    if (!isnan(bytes))
        json_object_set_new(object, key, json_integer((json_int_t)bytes));
}

static json_t *gpu_json(const struct gpu_values *gpu)
{
    json_t *object = json_object();
    json_object_set_new(object, "index", json_integer(gpu->index));
    if (gpu->uuid[0] != '\0')
        json_object_set_new(object, "uuid", json_text(gpu->uuid));
    if (gpu->trouble != NULL)
        json_object_set_new(object, "trouble", json_string(gpu->trouble));
    set_known(object, "use_percent", gpu->use_percent);
    set_known(object, "memory_use_percent", gpu->memory_use_percent);
    set_known(object, "power_w", gpu->power_w);
    set_known(object, "energy_j", gpu->energy_j);
    set_known_bytes(object, "memory_bytes", gpu->memory_bytes);
    set_known_bytes(object, "memory_used_bytes", gpu->memory_used_bytes);
    return object;
}

static json_t *gpus_json(const struct host_sample *sample)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sample->gpu_count; i++)
        json_array_append_new(list, gpu_json(&sample->gpus[i]));
    return list;
}

static json_t *host_json(const struct job *job, const struct node_link *node)
{
    const struct host_sample *sample = sampler_host(job_part(job, sampler), node->index);
    json_t *object = json_object();
    json_object_set_new(object, "host", json_text(node->host));
    if (sample == NULL)
        return object;
    if (sample->has_load)
        json_object_set_new(object, "load", json_real(sample->load));
    if (sample->memory_bytes != 0) {
        set_bytes(object, "memory_bytes", sample->memory_bytes);
        set_bytes(object, "memory_available_bytes", sample->memory_available_bytes);
    }
    json_object_set_new(object, "pressure", pressure_json(sample));
    if (sample->gpu_count > 0)
        json_object_set_new(object, "gpus", gpus_json(sample));
    return object;
}

static void add_sample(json_t *object, const struct rank_usage *usage)
{
    const struct rank_sample *last = &usage->last;
    double cpus = rank_usage_cpus(usage);
    if (cpus >= 0)
        json_object_set_new(object, "cpus", json_real(cpus));
    json_object_set_new(object, "cpu_s", json_real((double)last->cpu_us / 1e6));
    set_bytes(object, "resident_bytes", last->resident_bytes);
    json_object_set_new(object, "threads", json_integer(last->threads));
    json_object_set_new(object, "processes", json_integer(last->processes));
    if (last->gpus.count > 0) {
        json_object_set_new(object, "gpus", json_integer(last->gpus.count));
        set_known(object, "gpu_use_percent", last->gpus.use_percent);
        set_known(object, "gpu_power_w", last->gpus.power_w);
        set_known(object, "gpu_energy_j", last->gpus.energy_j);
        set_known_bytes(object, "gpu_memory_bytes", last->gpus.memory_bytes);
    }
    if (!last->has_io)
        return;
    set_bytes(object, "read_bytes", last->read_bytes);
    set_bytes(object, "written_bytes", last->written_bytes);
}

static json_t *rank_json(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    const struct rank_usage *usage = sampler_rank(job_part(job, sampler), seat);
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(record->rank));
    json_object_set_new(object, "host", json_text(job_seat_host(job, seat)));
    json_object_set_new(object, "pid", json_integer(record->pid));
    if (record->started_ns != 0)
        json_object_set_new(object, "up_s",
                            json_real((double)(clock_mono_ns() - record->started_ns) / 1e9));
    if (record->straggles)
        json_object_set_new(object, "straggler", json_true());
    if (usage != NULL)
        add_sample(object, usage);
    if (record->output_ns != 0) {
        int64_t age = clock_mono_ns() - record->output_ns;
        json_object_set_new(object, "last_output_s", json_real(age > 0 ? (double)age / 1e9 : 0));
    }
    json_t *progress = progress_json_rank(job, seat);
    if (progress != NULL)
        json_object_set_new(object, "progress", progress);
    return object;
}

static void put_lists(const struct job *job, json_t *object, bool ended)
{
    json_t *hosts = json_array(), *ranks = json_array();
    for (int i = 0; i < job->node_count; i++) {
        if (node_link_alive(job->nodes[i]) && job->nodes[i]->hello != NULL)
            json_array_append_new(hosts, host_json(job, job->nodes[i]));
    }
    for (int seat = 0; seat < job->ranks.size; seat++) {
        enum rank_state state = job->ranks.records[seat].state;
        if (state == RANK_RUNNING || (ended && state > RANK_RUNNING))
            json_array_append_new(ranks, rank_json(job, seat));
    }
    json_object_set_new(object, "hosts", hosts);
    json_object_set_new(object, "ranks", ranks);
}

json_t *usage_json_last(const struct job *job)
{
    json_t *object = json_object();
    put_lists(job, object, true);
    return object;
}

json_t *usage_json(struct job *job)
{
    json_t *object = json_object();
    json_object_set_new(object, "job", json_text(job->request->job_id));
    if (job->settings->job_name != NULL)
        json_object_set_new(object, "name", json_text(job->settings->job_name));
    json_object_set_new(object, "state", json_string(job_state_name(job->state)));
    json_object_set_new(object, "size", json_integer(job->plan->size));
    json_object_set_new(object, "up_s",
                        json_real((double)(clock_mono_ns() - job->request->begun_ns) / 1e9));
    int64_t age_ms = ask_age_ms(job, &topic_usage);
    if (age_ms >= 0)
        json_object_set_new(object, "sampled_s", json_real((double)age_ms / 1000));
    json_object_set_new(object, "sampling", json_boolean(ask_is_open(job, &topic_usage)));
    put_lists(job, object, false);
    if (job->state < JOB_CLOSING)
        sampler_ask(job_part(job, sampler), NULL, NULL);
    return object;
}

static json_t *usage(void *context, const struct control_asked *asked, struct error *err)
{
    (void)err;
    json_t *object = usage_json(context);
    control_sign(asked, object);
    return object;
}

static const struct control_rule requests[] = {{"usage", usage}, {NULL}};

/* It has no data: it shows those of the sampler. */
const struct driver_part usage_part = {.name = "usage", .requests = requests};
