/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <jansson.h>

#include "driver/tell/json_text.h"
#include "model/hosts/entry.h"

static json_t *ranks_json(const struct elastic *core, int host)
{
    const struct elastic_plan *plan = elastic_plan(core);
    json_t *ranks = json_array();
    for (int i = 0; plan != NULL && i < plan->size; i++) {
        if (plan->members[i].host == host)
            json_array_append_new(ranks, json_integer(i));
    }
    return ranks;
}

static json_t *host_json(const struct elastic_parts *parts, int host)
{
    const struct elastic *core = parts->core;
    int64_t now = job_running_ms(parts->job);
    struct elastic_host_facts facts = elastic_host_facts(core, host);
    json_t *object = json_object();
    json_object_set_new(object, "host", json_text(facts.entry->name));
    json_object_set_new(object, "state", json_string(elastic_host_state_name(facts.state)));
    json_object_set_new(object, "slots", json_integer(facts.slots));
    json_object_set_new(object, "ranks", facts.workers > 0 ? ranks_json(core, host) : json_array());
    json_object_set_new(object, "spare", json_boolean(facts.spare));
    if (facts.state == ELASTIC_HOST_DRAINING && facts.drain_deadline_ms >= 0)
        json_object_set_new(object, "drain_s",
                            json_real((double)(facts.drain_deadline_ms - now) / 1000));
    if (facts.blacklisted_until_ms == INT64_MAX)
        json_object_set_new(object, "blacklisted_s", json_null());
    else if (facts.blacklisted_until_ms > now)
        json_object_set_new(object, "blacklisted_s",
                            json_real((double)(facts.blacklisted_until_ms - now) / 1000));
    return object;
}

void elastic_control_status(const struct job *job, json_t *root)
{
    const struct elastic_parts *parts = elastic_parts_of(job);
    const struct elastic *core = parts->core;
    const struct elastic_plan *plan = elastic_plan(core);
    json_t *hosts = json_array();
    for (int i = 0; i < elastic_host_count(core); i++) {
        if (elastic_host_facts(core, i).state != ELASTIC_HOST_ABSENT)
            json_array_append_new(hosts, host_json(parts, i));
    }
    json_object_set_new(root, "state", json_string(elastic_state_name(elastic_state(core))));
    json_object_set_new(root, "epoch", json_integer(job->epoch));
    json_object_set_new(root, "size", json_integer(plan == NULL ? 0 : plan->size));
    json_object_set_new(root, "hosts", hosts);
    elastic_story_status(parts->story, elastic_facts(core), root);
}

/* The number of a host in the core; -1: the job does not know the host. */
static int find_host(const struct elastic_parts *parts, const char *name, struct error *err)
{
    const struct elastic *core = parts->core;
    int host = elastic_host_number(core, name);
    if (host >= 0 && elastic_host_facts(core, host).state != ELASTIC_HOST_ABSENT)
        return host;
    return error_set(err, "%s is not a host of this job; 'hvdrun status' lists the hosts", name);
}

static json_t *drain(void *context, const struct control_asked *asked, struct error *err)
{
    const struct elastic_parts *parts = elastic_parts_of(context);
    int64_t now = job_running_ms(context), within_ms;
    const char *name = control_host(asked, "host", err);
    if (name == NULL || control_time(asked, "within_s", &within_ms, err) < 0)
        return NULL;
    int host = find_host(parts, name, err);
    if (host < 0)
        return NULL;
    struct elastic_event event = {.kind = ELASTIC_HOST_DRAIN,
                                  .host = host,
                                  .text = "drain requested",
                                  .since_ms = now,
                                  .deadline_ms = within_ms < 0 ? -1 : now + within_ms};
    elastic_hub_feed(parts->hub, &event);
    return control_accepted(0);
}

static json_t *undrain(void *context, const struct control_asked *asked, struct error *err)
{
    const struct elastic_parts *parts = elastic_parts_of(context);
    const char *name = control_host(asked, "host", err);
    int host = name == NULL ? -1 : find_host(parts, name, err);
    if (host < 0)
        return NULL;
    elastic_hub_feed(parts->hub,
                     &(struct elastic_event){.kind = ELASTIC_HOST_UNDRAIN, .host = host});
    return control_accepted(0);
}

static json_t *add(void *context, const struct control_asked *asked, struct error *err)
{
    const char *text = control_text(asked, "hosts", err);
    struct host_list hosts = {0};
    int result = text == NULL ? -1 : hosts_parse(text, &hosts, err);
    if (result == 0)
        elastic_source_add(elastic_parts_of(context)->source, &hosts);
    hosts_destroy(&hosts);
    return control_accepted(result);
}

const struct control_rule elastic_requests[] = {
    {"drain", drain}, {"undrain", undrain}, {"add", add}, {NULL}};
