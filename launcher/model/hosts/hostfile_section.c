/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/hostfile_section.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"
#include "model/hosts/entry.h"
#include "model/settings/ini_lines.h"

#define SECTIONS_MAX (2 * HOSTS_MAX)

static const char known_sections[] = "expected [defaults], [host NAME] or [group NAME]";

static int refuse(const struct ini_place *place, struct error *err, const char *what,
                  const struct error *why)
{
    return error_usage(err, "%s:%d: '%s': %s", place->file, place->line, what, why->text);
}

static void add_named(struct host_section *section, const char *text, size_t length, int line)
{
    MEM_ADD(section->hosts, section->host_count) =
        (struct host_named){mem_strndup(text, length), line};
}

/* "host node[01-04]" and the like. */
static int read_header(const char *name, struct host_section *out, struct error *err)
{
    static const char *const words[] = {"defaults", "group", "host"};
    const char *word = NULL;
    struct text_rest behind = text_rest_of(name, strlen(name));
    size_t length = text_take_word(&behind, ' ', &word);
    const char *rest = behind.at;
    int kind = 0;
    while (kind < SECTION_KINDS && !text_is(word, length, words[kind]))
        kind++;
    out->kind = (enum section_kind)kind;
    if (kind == SECTION_KINDS || (kind == SECTION_DEFAULTS && *rest != '\0'))
        return error_usage(err, "an unknown section; %s", known_sections);
    if (kind != SECTION_DEFAULTS && *rest == '\0')
        return error_usage(err, "a section without a name; %s", known_sections);
    if (kind == SECTION_GROUP && !name_is_safe(rest, strlen(rest)))
        return error_usage(err,
                           "not the name of a group; expected letters, digits, '.', '_' and '-'");
    out->name = mem_strdup(kind == SECTION_GROUP ? rest : "");
    if (kind == SECTION_HOST)
        add_named(out, rest, strlen(rest), out->line);
    return 0;
}

static int take_section(void *context, const struct ini_place *place, const char *name,
                        struct error *err)
{
    struct host_sections *sections = context;
    struct host_section section = {.line = place->line};
    struct error why = ERROR_INIT;
    int result = sections->count < SECTIONS_MAX
                     ? read_header(name, &section, &why)
                     : error_set(&why, "more than %d sections; expected fewer", SECTIONS_MAX);
    if (result < 0) {
        char *shown AUTO_FREE = mem_printf("[%s]", plain_show(name, strlen(name)).text);
        return refuse(place, err, shown, &why);
    }
    section.first = sections->setting_count;
    MEM_ADD_ROOM(sections->items, sections->count, sections->room) = section;
    return 0;
}

/* `hosts = a, b[1-4]`, maybe on several lines. */
static int take_hosts(struct host_section *section, const struct ini_place *place,
                      const char *value, struct error *err)
{
    if (section->kind != SECTION_GROUP)
        return error_usage(err, "unknown in this section; expected it in [group NAME]");
    size_t left = strlen(value);
    for (bool more = true; more;) {
        size_t whole = host_entry_length(value, left), length = whole;
        const char *start = value;
        text_trim(&start, &length);
        if (length == 0)
            return error_usage(
                err, "an empty name; expected names with commas between, as in a, b[1-4]");
        add_named(section, start, length, place->line);
        more = whole < left;
        value += more ? whole + 1 : whole;
        left -= more ? whole + 1 : whole;
    }
    return 0;
}

static bool is_variable(const char *pair)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return strchr(letters, pair[0]) != NULL && pair[0] != '\0' && pair[strspn(pair, all)] == '=';
}

/* `env.NAME = value` or `env = NAME=value`; NULL: the key is another one. The caller owns it. */
static char *variable_of(const char *key, const char *value)
{
    if (strcmp(key, "env") == 0)
        return mem_strdup(value);
    return strncmp(key, "env.", 4) == 0 ? mem_printf("%s=%s", key + 4, value) : NULL;
}

static int read_setting(const struct host_section *section, const char *key, const char *value,
                        struct host_setting *out, struct error *err)
{
    out->text = variable_of(key, value);
    if (out->text != NULL) {
        out->key = HOST_KEY_TOTAL;
        if (is_variable(out->text))
            return 0;
        return error_usage(err, "not a variable; expected env.NAME = VALUE or env = NAME=VALUE");
    }
    out->key = host_key_find(key, strlen(key));
    out->text = mem_strdup(value);
    if (strpbrk(key, " \t") != NULL)
        return error_usage(
            err,
            "a plain host line among sections; expected KEY = VALUE, and the host as [host NAME]");
    if (out->key == HOST_KEY_TOTAL)
        return error_usage(err,
                           "an unknown key; expected slots, max_slots, user, port, address, "
                           "identity, transport, gpus, wdir, env%s",
                           section->kind == SECTION_GROUP ? " or hosts" : "");
    if (out->key == HOST_KEY_ADDRESS && section->kind != SECTION_HOST)
        return error_usage(err, "one address for several hosts; expected it in [host NAME]");
    return host_key_read(out->key, out->text, strlen(out->text), &out->value, err);
}

static int take_setting(struct host_sections *sections, const struct ini_place *place,
                        const char *key, const char *value, struct error *err)
{
    struct host_section *section = &sections->items[sections->count - 1];
    struct host_setting setting = {.section = sections->count - 1, .line = place->line};
    if (read_setting(section, key, value, &setting, err) < 0) {
        free(setting.text);
        return -1;
    }
    MEM_ADD_ROOM(sections->settings, sections->setting_count, sections->setting_room) = setting;
    section->count++;
    return 0;
}

/* As plain lines have it: a # behind a blank begins a comment too. */
static char *without_comment(const char *value)
{
    size_t length = strlen(value);
    for (size_t i = 0; i < length; i++) {
        if (value[i] == '#' && (i == 0 || text_is_blank(value[i - 1])))
            length = i;
    }
    while (length > 0 && text_is_blank(value[length - 1]))
        length--;
    return mem_strndup(value, length);
}

static int take_pair(void *context, const struct ini_place *place, const char *name,
                     const char *key, const char *value, struct error *err)
{
    struct host_sections *sections = context;
    struct error why = ERROR_INIT;
    char *text AUTO_FREE = without_comment(value);
    (void)name;
    int result = 0;
    if (sections->count == 0)
        result = error_usage(&why, "a setting before the first section; %s", known_sections);
    else if (strcmp(key, "hosts") == 0)
        result = take_hosts(&sections->items[sections->count - 1], place, text, &why);
    else
        result = take_setting(sections, place, key, text, &why);
    if (result == 0)
        return 0;
    char *line AUTO_FREE = mem_printf("%s = %s", key, text);
    return refuse(place, err, plain_show(line, strlen(line)).text, &why);
}

int host_sections_read(const char *text, const char *file, struct host_sections *out,
                       struct error *err)
{
    static const struct ini_reader reader = {.section = take_section, .pair = take_pair};
    if (ini_lines_read(text, file, &reader, out, err) < 0)
        return -1;
    for (size_t i = 0; i < out->count; i++) {
        const struct host_section *section = &out->items[i];
        if (section->kind == SECTION_GROUP && section->host_count == 0)
            return error_usage(err,
                               "%s:%d: [group %s] has no hosts; expected a line hosts = NAME, NAME",
                               file, section->line, section->name);
    }
    return 0;
}

void host_sections_destroy(struct host_sections *sections)
{
    for (size_t i = 0; i < sections->count; i++) {
        free(sections->items[i].name);
        for (size_t j = 0; j < sections->items[i].host_count; j++)
            free(sections->items[i].hosts[j].text);
        free(sections->items[i].hosts);
    }
    for (size_t i = 0; i < sections->setting_count; i++)
        free(sections->settings[i].text);
    free(sections->items);
    free(sections->settings);
    *sections = (struct host_sections){.count = 0};
}
