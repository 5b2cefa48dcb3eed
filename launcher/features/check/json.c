/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "model/usage/gpu_words.h"

/* Text from hosts may be invalid UTF-8; NULL and "" become null. */
static json_t *text_or_null(const char *text)
{
    if (text == NULL || text[0] == '\0')
        return json_null();
    json_t *string = json_string(text);
    return string != NULL ? string : json_string("(not UTF-8)");
}

/* UINT64_MAX: unlimited, or not known. */
static json_t *limit_number(uint64_t value)
{
    return value == UINT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static json_t *texts(char *const *items, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, text_or_null(items[i]));
    return array;
}

static json_t *describe_folders(const Hvdrun__Facts *facts)
{
    json_t *object = json_object();
    for (size_t i = 0; i < facts->n_folders; i++) {
        const Hvdrun__CheckFolder *folder = facts->folders[i];
        json_object_set_new(
            object, folder->what,
            json_pack("{s:o, s:I, s:I, s:b, s:o}", "path", text_or_null(folder->path), "free_bytes",
                      (json_int_t)folder->free_bytes, "total_bytes",
                      (json_int_t)folder->total_bytes, "noexec", (int)folder->noexec, "problem",
                      text_or_null(folder->problem)));
    }
    return object;
}

static json_t *describe_limits(const struct check_result *result, const struct check_host *host)
{
    json_t *object = json_object();
    for (size_t i = 0; i < host->facts->n_limits; i++) {
        const Hvdrun__CheckLimit *limit = host->facts->limits[i];
        uint64_t workers = check_host_limit(result, host, limit->name);
        json_object_set_new(object, limit->name,
                            json_pack("{s:o, s:o}", "hard", limit_number(limit->hard), "workers",
                                      limit_number(workers)));
    }
    return object;
}

static json_t *describe_library(const char *version, const char *file, const char *problem)
{
    return json_pack("{s:o, s:o, s:o}", "version", text_or_null(version), "file",
                     text_or_null(file), "problem", text_or_null(problem));
}

static void add_greeting(json_t *object, const struct check_host *host)
{
    const Hvdrun__AgentHello *hello = host->hello;
    json_object_set_new(object, "version", text_or_null(hello->version));
    json_object_set_new(object, "hostname", text_or_null(hello->hostname));
    json_object_set_new(object, "boot_id", text_or_null(hello->boot_id));
    json_object_set_new(object, "machine", text_or_null(hello->machine));
    json_object_set_new(object, "cpus", json_integer(hello->cpus_allowed));
    json_object_set_new(object, "cpus_online", json_integer(hello->cpus_online));
    json_object_set_new(object, "memory_bytes", json_integer((json_int_t)hello->memory_bytes));
    json_object_set_new(object, "interfaces", texts(hello->interfaces, hello->n_interfaces));
}

static void add_facts(json_t *object, const struct check_result *result,
                      const struct check_host *host)
{
    const Hvdrun__Facts *facts = host->facts;
    json_object_set_new(object, "system", text_or_null(facts->system));
    json_object_set_new(object, "kernel", text_or_null(facts->kernel));
    json_object_set_new(object, "pmix",
                        describe_library(facts->pmix, facts->pmix_file, facts->pmix_problem));
    json_object_set_new(object, "hwloc", describe_library(facts->hwloc, "", facts->hwloc_problem));
    json_object_set_new(object, "folders", describe_folders(facts));
    json_object_set_new(object, "limits", describe_limits(result, host));
    json_object_set_new(object, "gpus",
                        json_pack("{s:I, s:o, s:o}", "count", (json_int_t)host->hello->gpus,
                                  "names", texts(facts->gpus, facts->n_gpus), "driver",
                                  text_or_null(facts->gpu_driver)));
    json_object_set_new(object, "adapters", texts(facts->adapters, facts->n_adapters));
    json_object_set_new(object, "own_address", text_or_null(facts->own_address));
}

static json_t *number_or_null(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

static json_t *count_or_null(bool known, uint64_t value)
{
    return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *describe_holders(const Hvdrun__GpuHealth *gpu)
{
    json_t *array = json_array();
    for (size_t i = 0; i < gpu->n_processes; i++) {
        const Hvdrun__GpuProcess *process = gpu->processes[i];
        json_array_append_new(array,
                              json_pack("{s:I, s:o, s:o, s:o}", "pid", (json_int_t)process->pid,
                                        "name", text_or_null(process->name), "user",
                                        text_or_null(process->user), "memory_bytes",
                                        count_or_null(process->has_memory, process->memory_bytes)));
    }
    return array;
}

static json_t *describe_gpu(const Hvdrun__GpuHealth *gpu, const struct gpu_test *test)
{
    static const char *const names[SPEEDS] = {[SPEED_COMPUTE] = "bf16_tflop_per_s",
                                              [SPEED_MEMORY] = "memory_gb_per_s",
                                              [SPEED_HOST] = "host_gb_per_s"};
    const struct gpu_speed *speed = gpu_test_find(test, gpu->uuid);
    json_t *object = json_pack("{s:I, s:o, s:o, s:o, s:o}", "index", (json_int_t)gpu->index, "uuid",
                               text_or_null(gpu->uuid), "pci", text_or_null(gpu->pci), "name",
                               text_or_null(gpu->name), "trouble",
                               text_or_null(gpu_trouble_text((int)gpu->trouble)));
    json_object_set_new(object, "temperature_celsius",
                        count_or_null(gpu->has_temperature, gpu->celsius));
    json_object_set_new(object, "uncorrected_ecc_errors", limit_number(check_gpu_errors(gpu)));
    json_object_set_new(object, "memory_bytes", count_or_null(gpu->has_memory, gpu->memory_bytes));
    json_object_set_new(object, "memory_used_bytes",
                        count_or_null(gpu->has_memory, gpu->memory_used_bytes));
    json_object_set_new(object, "nvlinks", json_integer(gpu->links));
    json_object_set_new(object, "nvlinks_up", json_integer(gpu->links_up));
    json_object_set_new(object, "processes", describe_holders(gpu));
    for (int i = 0; i < SPEEDS; i++)
        json_object_set_new(object, names[i],
                            number_or_null(speed != NULL, speed == NULL ? 0 : speed->value[i]));
    return object;
}

static void add_gpu_check(json_t *object, const struct check_host *host)
{
    const struct gpu_test *test = &host->gpu_test;
    json_t *gpus = json_array();
    for (size_t i = 0; host->gpus != NULL && i < host->gpus->n_gpus; i++)
        json_array_append_new(gpus, describe_gpu(host->gpus->gpus[i], test));
    json_object_set_new(object, "gpu_check",
                        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "gpus", gpus, "pytorch",
                                  text_or_null(test->torch), "nccl", text_or_null(test->nccl),
                                  "no_test", text_or_null(test->none), "all_reduce_gb_per_s",
                                  number_or_null(test->reduce_gpus > 0, test->reduce),
                                  "between_hosts_gb_per_s",
                                  number_or_null(host->between > 0, host->between)));
}

static json_t *describe_host(const struct check_result *result,
                             const struct check_findings *findings, int number)
{
    const struct check_host *host = &result->hosts[number];
    const char *state = check_state_word(result, findings, number);
    char iface[64];
    json_t *object = json_pack(
        "{s:o, s:s, s:o, s:o, s:b, s:o, s:o, s:o}", "name", text_or_null(host->name), "state",
        host->why != NULL ? "failed" : state, "stage", text_or_null(host->stage), "why",
        text_or_null(host->why), "here", (int)host->is_here, "reached_by", text_or_null(host->peer),
        "login", text_or_null(host->login), "host_key", text_or_null(check_host_key(host)));
    check_host_interface(host, iface, sizeof(iface));
    json_object_set_new(object, "address", text_or_null(host->address));
    json_object_set_new(object, "interface", text_or_null(iface));
    json_object_set_new(object, "clock",
                        !host->clock_known
                            ? json_null()
                            : json_pack("{s:f, s:f}", "offset_s", (double)host->clock_ns / 1e9,
                                        "error_s", (double)host->clock_error_ns / 1e9));
    if (host->hello != NULL)
        add_greeting(object, host);
    if (host->facts != NULL)
        add_facts(object, result, host);
    if (result->gpu && host->facts != NULL)
        add_gpu_check(object, host);
    return object;
}

static json_t *describe_link(const struct check_result *result, const struct check_link *link)
{
    static const char *const outcomes[] = {
        [HVDRUN__PROBE_OUTCOME__PROBE_REACHED] = "reached",
        [HVDRUN__PROBE_OUTCOME__PROBE_SILENCE] = "no answer",
        [HVDRUN__PROBE_OUTCOME__PROBE_REFUSED] = "refused",
        [HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE] = "no route",
        [HVDRUN__PROBE_OUTCOME__PROBE_STRANGER] = "stranger",
        [HVDRUN__PROBE_OUTCOME__PROBE_BROKEN] = "broken",
    };
    bool reached = link->outcome == HVDRUN__PROBE_OUTCOME__PROBE_REACHED;
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:o}", "from", text_or_null(result->hosts[link->from].name),
        "to", text_or_null(result->hosts[link->to].name), "address",
        text_or_null(result->hosts[link->to].address), "source", text_or_null(link->source),
        "outcome", outcomes[link->outcome], "text",
        text_or_null(link->text != NULL ? link->text : link->transfer_problem));
    json_object_set_new(object, "connect_s",
                        reached ? json_real((double)link->connect_us / 1e6) : json_null());
    if (link->bytes > 0) {
        double seconds = (double)link->transfer_us / 1e6;
        json_object_set_new(object, "bytes", json_integer((json_int_t)link->bytes));
        json_object_set_new(object, "seconds", json_real(seconds));
        json_object_set_new(object, "bits_per_s",
                            json_real(seconds > 0 ? (double)link->bytes * 8 / seconds : 0));
    }
    return object;
}

static json_t *describe_findings(const struct check_result *result,
                                 const struct check_findings *findings)
{
    json_t *array = json_array();
    for (size_t i = 0; i < findings->count; i++) {
        const struct check_finding *finding = &findings->items[i];
        const char *host = finding->host < 0 ? NULL : result->hosts[finding->host].name;
        json_array_append_new(array, json_pack("{s:o, s:b, s:b, s:b, s:o}", "host",
                                               text_or_null(host), "fatal", (int)finding->fatal,
                                               "bad", (int)finding->bad, "pair", (int)finding->pair,
                                               "text", text_or_null(finding->text)));
    }
    return array;
}

int check_json(const struct check_result *result, const struct check_findings *findings, int status,
               struct buf *out)
{
    json_t *hosts = json_array(), *links = json_array();
    for (int i = 0; i < result->count; i++)
        json_array_append_new(hosts, describe_host(result, findings, i));
    for (size_t i = 0; i < result->link_count; i++) {
        if (result->links[i].tried)
            json_array_append_new(links, describe_link(result, &result->links[i]));
    }
    json_t *root =
        json_pack("{s:s, s:i, s:o, s:o, s:o}", "hvdrun", HVDRUN_VERSION, "status", status, "hosts",
                  hosts, "connections", links, "findings", describe_findings(result, findings));
    char *text AUTO_FREE = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    return text == NULL || buf_puts(out, text) < 0 ? -1 : buf_putc(out, '\n');
}
