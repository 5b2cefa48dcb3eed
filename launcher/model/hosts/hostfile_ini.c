/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/hostfile_ini.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostfile_section.h"
#include "model/hosts/hostlist_range.h"

/* No job has so many; what is compared and copied stays small. */
#define VARIABLES_MAX 1000           /* of a host, with the same strength */
#define VARIABLES_OF_ALL_MAX 1000000 /* of all hosts together */

/* What has been said about a host with the same strength. */
struct level {
    const struct host_setting *said[HOST_KEY_TOTAL]; /* NULL: not said */
    const struct host_setting **env;
    size_t env_count;
};

struct building {
    const struct hostfile *file;
    struct host_sections sections;
    struct host_list list; /* names in order; the rest is filled in at the end */
    struct level defaults; /* of all hosts */
    struct level *groups;  /* by host */
    struct level *hosts;   /* by host */
    size_t budget;         /* as in hostlist_expand() */
    size_t variables;      /* of all hosts so far */
    size_t section;        /* the one at hand */
    bool wanted;           /* its hosts are, or will be, in the list */
};

/* "[group x]" as an error tells it. */
static char *section_text(const struct building *building, const struct host_setting *setting)
{
    const struct host_section *section = &building->sections.items[setting->section];
    if (section->kind == SECTION_DEFAULTS)
        return mem_strdup("[defaults]");
    if (section->kind == SECTION_GROUP)
        return mem_printf("[group %s]", section->name);
    const char *name = section->hosts[0].text;
    return mem_printf("[host %s]", plain_show(name, strlen(name)).text);
}

static int contradiction(struct building *building, const char *host,
                         const struct host_setting *one, const struct host_setting *other,
                         struct error *err)
{
    char *place AUTO_FREE = section_text(building, one);
    bool env = other->key == HOST_KEY_TOTAL;
    const char *key = env ? "env" : host_key_name(other->key);
    return error_usage(
        err, "%s:%d: '%s = %s': %s has the %s '%s' already (line %d, %s); expected one value",
        building->file->name, other->line, key, plain_show(other->text, strlen(other->text)).text,
        host, key, plain_show(one->text, strlen(one->text)).text, one->line, place);
}

/* Are these values of the same variable? */
static bool same_variable(const char *one, const char *other)
{
    for (; *one == *other && *one != '='; one++)
        other++;
    return *one == *other;
}

static int count_variable(struct building *building, const struct level *level, const char *host,
                          const struct host_setting *setting, struct error *err)
{
    building->variables += level == &building->defaults ? building->list.count : 1;
    bool of_one = level->env_count >= VARIABLES_MAX;
    if (!of_one && building->variables <= VARIABLES_OF_ALL_MAX)
        return 0;
    return error_usage(
        err, "%s:%d: '%s': more than %d variables of %s; expected fewer", building->file->name,
        setting->line, plain_show(setting->text, strlen(setting->text)).text,
        of_one ? VARIABLES_MAX : VARIABLES_OF_ALL_MAX, of_one ? host : "all hosts together");
}

static int say_variable(struct building *building, struct level *level, const char *host,
                        const struct host_setting *setting, struct error *err)
{
    for (size_t i = 0; i < level->env_count; i++) {
        const struct host_setting *before = level->env[i];
        if (!same_variable(before->text, setting->text))
            continue;
        bool same = strcmp(before->text, setting->text) == 0;
        return same ? 0 : contradiction(building, host, before, setting, err);
    }
    if (count_variable(building, level, host, setting, err) < 0)
        return -1;
    MEM_ADD(level->env, level->env_count) = setting;
    return 0;
}

static int say(struct building *building, struct level *level, const char *host,
               const struct host_setting *setting, struct error *err)
{
    if (setting->key == HOST_KEY_TOTAL)
        return say_variable(building, level, host, setting, err);
    const struct host_setting *before = level->said[setting->key];
    if (before != NULL && strcmp(before->text, setting->text) != 0)
        return contradiction(building, host, before, setting, err);
    level->said[setting->key] = setting;
    return 0;
}

static int say_all(struct building *building, struct level *level, const char *host,
                   struct error *err)
{
    const struct host_section *section = &building->sections.items[building->section];
    for (size_t i = 0; i < section->count; i++) {
        const struct host_setting *setting = &building->sections.settings[section->first + i];
        if (say(building, level, host, setting, err) < 0)
            return -1;
    }
    return 0;
}

static int add_host(void *context, const char *name, struct error *err)
{
    struct building *building = context;
    if (host_entry_check_name(&building->list, name, err) < 0)
        return -1;
    if (building->wanted && hosts_find(&building->list, name) == NULL)
        hosts_add(&building->list, name, 0, false);
    return 0;
}

static int apply_to_host(void *context, const char *name, struct error *err)
{
    struct building *building = context;
    const struct host *host = hosts_find(&building->list, name);
    if (host == NULL)
        return 0; /* not of the group that was asked for */
    bool group = building->sections.items[building->section].kind == SECTION_GROUP;
    size_t index = (size_t)(host - building->list.items);
    struct level *level = group ? &building->groups[index] : &building->hosts[index];
    return say_all(building, level, name, err);
}

/* A plain name, a range or an IPv6 address in brackets or not. */
static int each_name(struct building *building, const char *text,
                     int (*each)(void *context, const char *name, struct error *err),
                     struct error *err)
{
    size_t length = strlen(text);
    bool brackets = text[0] == '[' && text[length - 1] == ']';
    if (brackets && host_is_ipv6(text + 1, length - 2)) {
        char *name AUTO_FREE = mem_strndup(text + 1, length - 2);
        return each(building, name, err);
    }
    if (host_is_ipv6(text, length))
        return each(building, text, err);
    if (strpbrk(text, "@:") != NULL)
        return error_usage(err,
                           "more than a name; expected user = NAME and slots = N in the section");
    return hostlist_expand(text, length, &building->budget, each, building, err);
}

/* The hosts that sections are about: all, or those of the group that was asked for. */
static int name_hosts(struct building *building, struct error *err)
{
    const char *group = building->file->group;
    building->budget = HOSTS_RANGE_MAX;
    for (size_t i = 0; i < building->sections.count; i++) {
        const struct host_section *section = &building->sections.items[i];
        building->wanted = group == NULL || strcmp(section->name, group) == 0;
        for (size_t j = 0; j < section->host_count; j++) {
            const struct host_named *named = &section->hosts[j];
            if (each_name(building, named->text, add_host, err) < 0)
                return error_wrap(err, "%s:%d: '%s'", building->file->name, named->line,
                                  plain_show(named->text, strlen(named->text)).text);
        }
    }
    return 0;
}

static int check_address(const struct building *building, const struct host_section *section,
                         struct error *err)
{
    const char *name = section->hosts[0].text;
    bool range = strchr(name, '[') != NULL && strchr(name, ':') == NULL;
    for (size_t i = 0; range && i < section->count; i++) {
        const struct host_setting *setting = &building->sections.settings[section->first + i];
        if (setting->key == HOST_KEY_ADDRESS)
            return error_usage(
                err, "%s:%d: one address for a range of hosts; expected a section for each host",
                building->file->name, setting->line);
    }
    return 0;
}

static int apply_section(struct building *building, struct error *err)
{
    const struct host_section *section = &building->sections.items[building->section];
    if (section->kind == SECTION_DEFAULTS)
        return say_all(building, &building->defaults, "every host", err);
    if (section->kind == SECTION_HOST && check_address(building, section, err) < 0)
        return -1;
    for (size_t i = 0; i < section->host_count; i++) {
        if (each_name(building, section->hosts[i].text, apply_to_host, err) < 0)
            return -1;
    }
    return 0;
}

static const struct host_setting *strongest(const struct building *building, size_t host,
                                            enum host_key key)
{
    const struct host_setting *said = building->hosts[host].said[key];
    said = said != NULL ? said : building->groups[host].said[key];
    return said != NULL ? said : building->defaults.said[key];
}

static void put_env(const struct level *level, struct strv *env)
{
    for (size_t i = 0; i < level->env_count; i++)
        strv_env_put(env, level->env[i]->text);
}

static int finish_host(struct building *building, size_t index, struct host_list *out,
                       struct error *err)
{
    const struct host_setting *slots = strongest(building, index, HOST_KEY_SLOTS);
    if (slots == NULL) /* a host of which only its GPUs are known has a slot for each of them */
        slots = strongest(building, index, HOST_KEY_GPUS);
    int number = slots == NULL || slots->value.number == 0 ? 1 : slots->value.number;
    struct host *host = hosts_add(out, building->list.items[index].name, number, slots != NULL);
    for (enum host_key key = HOST_KEY_SLOTS + 1; key < HOST_KEY_TOTAL; key++) {
        const struct host_setting *said = strongest(building, index, key);
        if (said != NULL)
            host_key_put(host, key, &said->value);
    }
    put_env(&building->defaults, &host->traits.env);
    put_env(&building->groups[index], &host->traits.env);
    put_env(&building->hosts[index], &host->traits.env);
    if (host->max_slots == 0 || host->max_slots >= host->slots)
        return 0;
    return error_usage(
        err, "%s:%d: max_slots=%d is less than the slots=%d of %s; expected at least as many",
        building->file->name, strongest(building, index, HOST_KEY_MAX_SLOTS)->line, host->max_slots,
        host->slots, host->name);
}

static bool has_group(const struct host_sections *sections, const char *name)
{
    for (size_t i = 0; i < sections->count; i++) {
        const struct host_section *section = &sections->items[i];
        if (section->kind == SECTION_GROUP && strcmp(section->name, name) == 0)
            return true;
    }
    return false;
}

static int build(struct building *building, struct host_list *out, struct error *err)
{
    const struct hostfile *file = building->file;
    if (file->group != NULL && !has_group(&building->sections, file->group))
        return error_usage(err, "%s has no group '%s'; expected a section [group %s]", file->name,
                           file->group, file->group);
    if (name_hosts(building, err) < 0)
        return -1;
    size_t count = building->list.count;
    if (count == 0)
        return error_usage(
            err, "%s names no host; expected [host NAME], or [group NAME] with hosts", file->name);
    building->groups = mem_array(count, sizeof(*building->groups));
    building->hosts = mem_array(count, sizeof(*building->hosts));
    building->budget = HOSTS_RANGE_MAX;
    for (size_t i = 0; i < building->sections.count; i++) {
        building->section = i;
        if (apply_section(building, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (finish_host(building, i, out, err) < 0)
            return -1;
    }
    return 0;
}

int hostfile_ini_parse(const struct hostfile *file, struct host_list *out, struct error *err)
{
    struct error reason = ERROR_INIT;
    struct building building = {.file = file};
    char *text AUTO_FREE = mem_strndup(file->bytes, file->length);
    struct error *filled = err == NULL ? &reason : err;
    int result = host_sections_read(text, file->name, &building.sections, filled);
    if (result == 0)
        result = build(&building, out, filled);
    for (size_t i = 0; i < building.list.count; i++) {
        if (building.groups != NULL)
            free(building.groups[i].env);
        if (building.hosts != NULL)
            free(building.hosts[i].env);
    }
    free(building.groups);
    free(building.hosts);
    free(building.defaults.env);
    hosts_destroy(&building.list);
    host_sections_destroy(&building.sections);
    return result;
}
