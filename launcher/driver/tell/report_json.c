/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "driver/tell/stalls.h"
#include "driver/tell/tell.h"
#include "model/allocation/allocation.h"

static json_t *ranks_json(const struct stall_ranks *ranks)
{
    json_t *list = json_array();
    for (int i = 0; i < ranks->count; i++)
        json_array_append_new(list, json_integer(ranks->list[i]));
    return list;
}

static json_t *stall_json(const struct stall *stall)
{
    json_t *object = json_object();
    json_object_set_new(object, "time", json_real((double)(stall->since_ns / 1000) / 1e6));
    json_object_set_new(object, "reported_by", json_integer(stall->rank));
    json_object_set_new(object, "process_set", json_integer(stall->set));
    json_object_set_new(object, "operation", json_text(stall->operation));
    json_object_set_new(object, "name", json_text(stall->name));
    json_object_set_new(object, "seconds", json_integer(stall->seconds));
    json_object_set_new(object, "others", json_integer(stall->others));
    json_object_set_new(object, "waiting", ranks_json(&stall->waiting));
    json_object_set_new(object, "missing", ranks_json(&stall->missing));
    json_object_set_new(object, "more_ranks",
                        json_boolean(stall->waiting.more || stall->missing.more));
    json_object_set_new(object, "over", json_boolean(stall->over));
    return object;
}

/* What waits, or waited, for ranks in libhvd. */
static json_t *stalls_json(const struct job *job)
{
    json_t *list = json_array();
    const struct stall *stall;
    for (int i = 0; (stall = stall_list_at(job_part(job, stall_list), i)) != NULL; i++)
        json_array_append_new(list, stall_json(stall));
    return list;
}

struct json_t *report_stalls_now(const struct job *job)
{
    json_t *list = json_array();
    for (int i = 0; stall_list_at(job_part(job, stall_list), i) != NULL; i++) {
        AUTO_BUF struct buf line = BUF_INIT(8192);
        if (!stall_lasts(stall_list_at(job_part(job, stall_list), i), clock_mono_ns()))
            continue;
        stall_text(stall_list_at(job_part(job, stall_list), i), &line);
        json_array_append_new(list, json_text(buf_text(&line)));
    }
    return list;
}

#define REPORT_VERSION 1

static json_t *text_or_null(const char *text)
{
    json_t *value = text == NULL ? NULL : json_string(text);
    return value != NULL ? value : json_null();
}

static json_t *rank_json(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    bool ended = record->state >= RANK_EXITED && !record->exec_failed;
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(record->rank));
    json_object_set_new(object, "host", text_or_null(job_seat_host(job, seat)));
    json_add_world(object, record);
    json_object_set_new(object, "local_rank", json_integer(record->local_rank));
    json_object_set_new(object, "app", json_integer(record->app));
    json_object_set_new(object, "pid", record->pid > 0 ? json_integer(record->pid) : json_null());
    json_object_set_new(object, "state", json_string(rank_state_name(record->state)));
    json_object_set_new(object, "started", json_wall_time(job, record->started_ns));
    json_object_set_new(object, "ended", json_wall_time(job, record->ended_ns));
    json_object_set_new(object, "last_output", json_wall_time(job, record->output_ns));
    json_object_set_new(object, "exit_code",
                        ended && !record->signaled ? json_integer(record->code) : json_null());
    json_object_set_new(object, "signal",
                        ended && record->signaled ? json_integer(record->code) : json_null());
    json_object_set_new(object, "signal_by", text_or_null(rank_end_requester(record)));
    json_object_set_new(object, "core_dumped", json_boolean(record->core));
    json_object_set_new(object, "out_of_memory", json_boolean(record->oom));
    json_object_set_new(object, "output_cut", json_boolean(record->cut));
    json_object_set_new(object, "user_seconds", json_real((double)record->user_us / 1e6));
    json_object_set_new(object, "system_seconds", json_real((double)record->system_us / 1e6));
    json_object_set_new(object, "max_rss_kib", json_integer((json_int_t)record->max_rss_kb));
    json_object_set_new(object, "text", text_or_null(record->text));
    json_object_set_new(object, "role", json_string(exit_role_name(report_role(job, seat))));
    return object;
}

static json_t *cause_json(const struct job *job)
{
    json_t *object = json_object();
    const char *host = report_verdict_host(job);
    json_object_set_new(object, "kind", json_string(exit_cause_name(job->verdict.cause)));
    json_object_set_new(object, "rank",
                        job->verdict.seat >= 0 ? json_integer(job_seat_rank(job, job->verdict.seat))
                                               : json_null());
    json_object_set_new(object, "host", text_or_null(host));
    json_object_set_new(object, "tie", json_boolean(job->verdict.tie));
    json_object_set_new(object, "likely", json_boolean(job->verdict.likely));
    json_object_set_new(object, "first_rank",
                        job->verdict.likely
                            ? json_integer(job_seat_rank(job, job->verdict.first_seat))
                            : json_null());
    json_object_set_new(object, "text", text_or_null(job->verdict.explanation));
    return object;
}

static json_t *job_json(const struct job *job)
{
    int64_t end = job_end_ns(job);
    json_t *argv = json_array();
    for (char *const *word = job->request->argv; *word != NULL; word++)
        json_array_append_new(argv, text_or_null(*word));
    json_t *object = json_object();
    json_object_set_new(object, "id", text_or_null(job->request->job_id));
    json_object_set_new(object, "name", text_or_null(job->settings->job_name));
    json_object_set_new(object, "argv", argv);
    json_object_set_new(object, "np", json_integer(job->plan->size));
    json_object_set_new(object, "status", json_integer(job->verdict.status));
    json_object_set_new(object, "cause", cause_json(job));
    json_object_set_new(object, "started", json_wall_time(job, job->request->begun_ns));
    json_object_set_new(object, "ended", json_wall_time(job, end));
    json_object_set_new(object, "seconds", json_real((double)(end - job->request->begun_ns) / 1e9));
    return object;
}

/* The allocation of the job; null outside one. */
static json_t *scheduler_json(const struct job *job)
{
    const struct allocation *allocation = job->request->allocation;
    if (allocation == NULL || allocation->kind == ALLOCATION_NONE)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(allocation_name(allocation->kind)));
    json_object_set_new(object, "job_id", text_or_null(allocation->job_id));
    json_object_set_new(object, "restart_count", json_integer(allocation->restart_count));
    json_object_set_new(object, "end_time",
                        allocation->end_s > 0 ? json_integer(allocation->end_s) : json_null());
    return object;
}

static json_t *node_json(const struct job *job, const struct node_link *node)
{
    int local_size = node->place >= 0 ? job->plan->nodes[node->place].local_size : 0;
    const Hvdrun__AgentHello *hello = node->hello;
    json_t *object = json_object();
    json_object_set_new(object, "host", text_or_null(node->host));
    json_object_set_new(object, "local_size", json_integer(local_size));
    json_object_set_new(object, "state", json_string(node_state_name(node->state)));
    json_object_set_new(object, "hostname", text_or_null(hello == NULL ? NULL : hello->hostname));
    json_object_set_new(object, "agent_pid",
                        hello == NULL ? json_null() : json_integer(hello->pid));
    json_object_set_new(object, "cpus",
                        hello == NULL ? json_null() : json_integer(hello->cpus_allowed));
    return object;
}

static void put_lists(json_t *root, const struct job *job)
{
    json_t *nodes = json_array();
    for (int i = 0; i < job->node_count; i++)
        json_array_append_new(nodes, node_json(job, job->nodes[i]));
    json_t *ranks = json_array();
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].epoch != 0)
            json_array_append_new(ranks, rank_json(job, seat));
    }
    json_object_set_new(root, "nodes", nodes);
    json_object_set_new(root, "ranks", ranks);
    json_object_set_new(root, "stacks", json_null()); /* a part may know better */
    PARTS_TELL(job, report, root);
}

json_t *report_object(const struct job *job, bool lists)
{
    json_t *root = json_object();
    json_object_set_new(root, "version", json_integer(REPORT_VERSION));
    json_object_set_new(root, "launcher", json_string("hvdrun " HVDRUN_VERSION));
    json_object_set_new(root, "job", job_json(job));
    json_object_set_new(root, "scheduler", scheduler_json(job));
    if (lists)
        put_lists(root, job);
    json_object_set_new(root, "stalls", stalls_json(job));
    json_t *progress = progress_json_job(job);
    json_object_set_new(root, "progress", progress != NULL ? progress : json_null());
    KIND_TELL(job, report, root);
    return root;
}

char *report_json(const struct job *job)
{
    json_t *root = report_object(job, true);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
    json_decref(root);
    if (text == NULL)
        return mem_strdup("");
    char *whole = mem_printf("%s\n", text);
    free(text);
    return whole;
}

/* One bar of the trace; times in microseconds since the launcher started. */
static void add_span(json_t *list, const char *name, int row, int line, int64_t begun_ns,
                     int64_t from_ns, int64_t to_ns)
{
    if (from_ns == 0 || to_ns == 0)
        return;
    json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "name", name, "ph", "X",
                                          "pid", row, "tid", line, "ts",
                                          (double)(from_ns - begun_ns) / 1e3, "dur",
                                          (double)(to_ns - from_ns) / 1e3));
}

/* A bar for each stage of the transport, up to the next one in time. That order may differ from
 * the list: a host may wait before a stage or be called again. */
static void add_stages(json_t *list, const struct node_link *node, int row, int64_t begun_ns)
{
    for (int stage = TRANSPORT_STAGES - 1; stage >= 0; stage--) {
        int64_t from = node->stage_ns[stage], end = node->hello_ns;
        for (int other = 0; other < TRANSPORT_STAGES; other++) {
            if (node->stage_ns[other] > from && node->stage_ns[other] < end)
                end = node->stage_ns[other];
        }
        add_span(list, transport_stage_name((enum transport_stage)stage), row, 0, begun_ns, from,
                 end);
    }
}

static void add_row_name(json_t *list, int row, const char *name)
{
    json_t *safe = json_string(name);
    if (safe == NULL)
        safe = json_string("(not UTF-8)");
    json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:{s:o}}", "name", "process_name", "ph",
                                          "M", "pid", row, "args", "name", safe));
}

char *report_trace(const struct job *job)
{
    int64_t begun = job->request->begun_ns;
    json_t *list = json_array();
    add_row_name(list, 0, "hvdrun");
    add_span(list, "read the command line, plan, fork", 0, 0, begun, begun, job->times.opened_ns);
    add_span(list, "bring up the job", 0, 0, begun, job->times.opened_ns, job->times.started_ns);
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        add_row_name(list, i + 1, node->host);
        add_span(list, "connect", i + 1, 0, begun, job->times.opened_ns, node->hello_ns);
        add_stages(list, node, i + 1, begun);
        add_span(list, "prepare", i + 1, 0, begun, node->hello_ns, node->ready_ns);
    }
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        AUTO_FREE char *name = mem_printf("rank %d: start", record->rank);
        add_span(list, name, record->node + 1, record->local_rank + 1, begun, job->times.started_ns,
                 record->started_ns);
    }
    json_t *root = json_pack("{s:o, s:s}", "traceEvents", list, "displayTimeUnit", "ms");
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text == NULL ? mem_strdup("") : text;
}

static void tell(struct job *job)
{
    if (job->settings->report != NULL)
        output_file_put(job->output, job->settings->report, report_json(job));
}

const struct driver_part report_part = {.name = "report", .tell = tell};
