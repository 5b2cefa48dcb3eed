/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/elastic/discovery.h"
#include "driver/job/part.h"

struct elastic_source {
    struct elastic_hub *hub;
    struct discovery *discovery;         /* NULL: the hosts were named */
    struct host_list found, added, both; /* the core gets `both` */
};

static void copy_host(struct host_list *to, const struct host *from)
{
    struct host *host = hosts_add(to, from->name, 0, true);
    host->slots = from->slots; /* the later count replaces the earlier one */
    host->slots_given = from->slots_given;
    host_traits_copy(&host->traits, &from->traits);
}

static void copy_hosts(struct host_list *to, const struct host_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        copy_host(to, &from->items[i]);
}

static void tell(struct elastic_source *source)
{
    hosts_destroy(&source->both);
    source->both = (struct host_list){.count = 0};
    copy_hosts(&source->both, &source->found);
    copy_hosts(&source->both, &source->added);
    struct elastic_event event = {.kind = ELASTIC_HOSTS, .hosts = &source->both};
    elastic_hub_feed(source->hub, &event);
}

static void discovered(void *context, const struct host_list *hosts)
{
    struct elastic_source *source = context;
    struct job *job = elastic_hub_job(source->hub);
    hosts_destroy(&source->found);
    source->found = (struct host_list){.count = 0};
    for (size_t i = 0; i < hosts->count; i++) {
        if (source->discovery == NULL || !PARTS_ANY(job, leaves_out, hosts->items[i].name))
            copy_host(&source->found, &hosts->items[i]);
    }
    tell(source);
}

static void discovery_failed(void *context, const char *why, bool first)
{
    const struct elastic_source *source = context;
    AUTO_FREE char *text = mem_printf("host discovery: %s", why);
    struct elastic_event event = {.kind = ELASTIC_DISCOVERY_FAILED, .text = text, .first = first};
    elastic_hub_feed(source->hub, &event);
}

struct elastic_source *elastic_source_create(struct elastic_hub *hub, struct error *err)
{
    static const struct discovery_ops ops = {.hosts = discovered, .failed = discovery_failed};
    const struct job *job = elastic_hub_job(hub);
    const struct settings *settings = job->settings;
    struct elastic_source *source = MEM_NEW((struct elastic_source){.hub = hub});
    if (settings->host_discovery_script == NULL && settings->hosts_watch == NULL)
        return source;
    struct discovery_config config = {.loop = job->loop,
                                      .helpers = job_part(job, helpers),
                                      .log = &job->log,
                                      .script = settings->host_discovery_script,
                                      .watch = settings->hosts_watch,
                                      .period_ms = settings->discovery_period,
                                      .limit_ms = settings->discovery_timeout,
                                      .slots_per_host = (int)settings->slots_per_host};
    source->discovery = discovery_create(&config, &ops, source, err);
    if (source->discovery != NULL)
        return source;
    elastic_source_destroy(source);
    return NULL;
}

void elastic_source_begin(struct elastic_source *source)
{
    if (source->discovery != NULL)
        discovery_begin(source->discovery);
    else
        discovered(source, elastic_hub_job(source->hub)->request->hosts);
}

void elastic_source_pause(struct elastic_source *source, bool paused)
{
    if (source->discovery != NULL)
        discovery_pause(source->discovery, paused);
}

void elastic_source_stop(struct elastic_source *source)
{
    discovery_destroy(source->discovery);
    source->discovery = NULL;
}

void elastic_source_destroy(struct elastic_source *source)
{
    if (source == NULL)
        return;
    elastic_source_stop(source);
    hosts_destroy(&source->found);
    hosts_destroy(&source->added);
    hosts_destroy(&source->both);
    free(source);
}

int elastic_source_come(struct elastic_source *source, const char *name, int max_np,
                        const char **why)
{
    const struct settings *settings = elastic_hub_job(source->hub)->settings;
    const struct elastic *core = elastic_hub_core(source->hub);
    int slots = settings->slots_per_host > 0 ? (int)settings->slots_per_host : 1;
    *why = "hvdrun has as many hosts as it may use (--max-np)";
    if (max_np > 0 && elastic_promised_slots(core) >= max_np + settings->spares * slots)
        return -1;
    *why = "too many hosts have come and gone in this job";
    if (elastic_host_number(core, name) < 0 && elastic_host_count(core) >= ELASTIC_STRANGERS_MAX)
        return -1;
    if (hosts_find(&source->added, name) != NULL)
        return 0;
    struct host *host = hosts_add(&source->added, name, slots, true);
    host->traits.came = true;
    tell(source);
    return 0;
}

void elastic_source_leave(struct elastic_source *source, const char *name)
{
    struct host_list kept = {.count = 0};
    for (size_t i = 0; i < source->added.count; i++) {
        if (strcmp(source->added.items[i].name, name) != 0)
            copy_host(&kept, &source->added.items[i]);
    }
    hosts_destroy(&source->added);
    source->added = kept;
    tell(source);
}

void elastic_source_add(struct elastic_source *source, const struct host_list *hosts)
{
    copy_hosts(&source->added, hosts);
    tell(source);
}
