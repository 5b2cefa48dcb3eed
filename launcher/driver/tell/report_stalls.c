/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "base/clock.h"
#include "driver/tell/report.h"
#include "driver/tell/stalls.h"

static json_t *text(const char *value)
{
    json_t *json = json_string(value);
    return json != NULL ? json : json_string("(not UTF-8)");
}

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
    json_object_set_new(object, "operation", text(stall->operation));
    json_object_set_new(object, "name", text(stall->name));
    json_object_set_new(object, "seconds", json_integer(stall->seconds));
    json_object_set_new(object, "others", json_integer(stall->others));
    json_object_set_new(object, "waiting", ranks_json(&stall->waiting));
    json_object_set_new(object, "missing", ranks_json(&stall->missing));
    json_object_set_new(object, "more_ranks",
                        json_boolean(stall->waiting.more || stall->missing.more));
    json_object_set_new(object, "over", json_boolean(stall->over));
    return object;
}

struct json_t *report_stalls(const struct job *job)
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
        json_array_append_new(list, text(buf_text(&line)));
    }
    return list;
}
