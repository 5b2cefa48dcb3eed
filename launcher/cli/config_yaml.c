/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads libyaml's events by recursive descent. The depth is always two, whatever the file has, and
 * aliases, lists and further documents are errors. So the size of the file bounds work and memory.
 */
#include "cli/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/settings/suggest.h"

#define DEPTH_MAX 8
#define NAME_LIMIT 48 /* longer than the name of any section or key */

struct yaml_reading {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    const char *file;
    struct settings *settings;
    struct error *err;
};

static int fail(struct yaml_reading *reading, const char *text)
{
    size_t line = reading->event.start_mark.line + 1;
    return error_usage(reading->err, "%s:%zu: %s", reading->file, line, text);
}

/* Frees the current event and reads the next one. */
static int advance(struct yaml_reading *reading)
{
    yaml_event_delete(&reading->event);
    if (yaml_parser_parse(&reading->parser, &reading->event) != 0)
        return 0;
    const char *problem = reading->parser.problem;
    size_t line = reading->parser.problem_mark.line + 1;
    return error_usage(reading->err, "%s:%zu: this is not YAML: %s", reading->file, line,
                       problem == NULL ? "unknown problem" : problem);
}

static const char *scalar(const struct yaml_reading *reading)
{
    return (const char *)reading->event.data.scalar.value;
}

static bool is_null(const struct yaml_reading *reading)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (reading->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (strcmp(scalar(reading), nulls[i]) == 0)
            return true;
    }
    return false;
}

/* The option of "section.key". */
static enum option_id find_option(const char *path, bool *inverted)
{
    *inverted = false;
    for (int i = 0; i < OPT_TOTAL; i++) {
        const char *known = option_info((enum option_id)i)->yaml;
        if (known != NULL && strcmp(known, path) == 0)
            return (enum option_id)i;
    }
    const struct option_other_name *other = option_other_yaml(0);
    for (size_t i = 0; other != NULL; other = option_other_yaml(++i)) {
        if (strcmp(other->name, path) == 0) {
            *inverted = other->inverted;
            return other->id;
        }
    }
    return OPT_TOTAL;
}

static bool is_section(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < OPT_TOTAL; i++) {
        const char *known = option_info((enum option_id)i)->yaml;
        if (known != NULL && strncmp(known, name, length) == 0 && known[length] == '.')
            return true;
    }
    return false;
}

static int unknown(struct yaml_reading *reading, const char *path)
{
    struct buf text AUTO_BUF = BUF_INIT(512);
    struct suggest suggest;
    bool top = strchr(path, '.') == NULL;
    suggest_init(&suggest, path, strlen(path));
    for (int i = 0; i < OPT_TOTAL; i++) {
        const char *known = option_info((enum option_id)i)->yaml;
        if (known == NULL)
            continue;
        char *section AUTO_FREE = mem_strndup(known, strcspn(known, "."));
        suggest_offer(&suggest, top ? section : known);
    }
    buf_printf(&text, "unknown key '%s'", path);
    suggest_append(&suggest, &text);
    return fail(reading, buf_text(&text));
}

static int set_option(struct yaml_reading *reading, const char *path)
{
    bool inverted = false, yes = false;
    enum option_id id = find_option(path, &inverted);
    const char *value = scalar(reading);
    size_t line = reading->event.start_mark.line + 1;
    if (id == OPT_TOTAL)
        return unknown(reading, path);
    if (is_null(reading))
        return 0;
    if (strlen(value) != reading->event.data.scalar.length)
        return fail(reading, "the value contains a NUL byte");
    if (inverted && parse_bool(value, &yes, NULL) == 0)
        value = yes ? "no" : "yes";
    char *place AUTO_FREE = mem_printf("%s:%zu: %s", reading->file, line, path);
    if (settings_set(reading->settings, id, value, SOURCE_FILE, place, reading->err) < 0) {
        reading->err->status = STATUS_USAGE;
        return -1;
    }
    return 0;
}

/* The key at the current event, with "section." before it. NULL and an error: it is not a key. */
static char *key_name(struct yaml_reading *reading, const char *section)
{
    if (reading->event.type != YAML_SCALAR_EVENT) {
        fail(reading, "expected 'key: value'");
        return NULL;
    }
    const char *key = scalar(reading);
    if (strlen(key) >= NAME_LIMIT || strlen(key) != reading->event.data.scalar.length) {
        fail(reading, "unknown key");
        return NULL;
    }
    return mem_printf("%s%s%s", section, section[0] == '\0' ? "" : ".", key);
}

/* Reads the pairs of one section, up to its end. */
static int read_section(struct yaml_reading *reading, const char *section)
{
    for (;;) {
        if (advance(reading) < 0)
            return -1;
        if (reading->event.type == YAML_MAPPING_END_EVENT)
            return 0;
        char *path AUTO_FREE = key_name(reading, section);
        if (path == NULL || advance(reading) < 0)
            return -1;
        if (reading->event.type != YAML_SCALAR_EVENT) {
            char *text AUTO_FREE = mem_printf("'%s': expected one plain value", path);
            return fail(reading, text);
        }
        if (set_option(reading, path) < 0)
            return -1;
    }
}

/* Reads one entry at the top level: a section, or a key outside of sections. */
static int read_entry(struct yaml_reading *reading, const char *name)
{
    bool section = is_section(name);
    if (advance(reading) < 0)
        return -1;
    if (reading->event.type == YAML_MAPPING_START_EVENT && section)
        return read_section(reading, name);
    if (reading->event.type != YAML_SCALAR_EVENT || (section && !is_null(reading))) {
        char *text AUTO_FREE = mem_printf(
            "'%s': expected %s", name, section ? "'key: value' pairs below it" : "one plain value");
        bool inverted = false;
        bool known = section || find_option(name, &inverted) != OPT_TOTAL;
        return known ? fail(reading, text) : unknown(reading, name);
    }
    return section ? 0 : set_option(reading, name);
}

static int read_top(struct yaml_reading *reading)
{
    bool nothing = reading->event.type == YAML_SCALAR_EVENT && is_null(reading);
    if (nothing)
        return advance(reading);
    if (reading->event.type != YAML_MAPPING_START_EVENT)
        return fail(reading, "expected sections such as 'params:'");
    for (;;) {
        if (advance(reading) < 0)
            return -1;
        if (reading->event.type == YAML_MAPPING_END_EVENT)
            return advance(reading);
        char *name AUTO_FREE = key_name(reading, "");
        if (name == NULL || read_entry(reading, name) < 0)
            return -1;
    }
}

static int read_stream(struct yaml_reading *reading)
{
    if (advance(reading) < 0 || advance(reading) < 0) /* past the two start events */
        return -1;
    if (reading->event.type == YAML_STREAM_END_EVENT)
        return 0;
    if (advance(reading) < 0 || read_top(reading) < 0 || advance(reading) < 0)
        return -1;
    if (reading->event.type != YAML_STREAM_END_EVENT)
        return fail(reading, "a second document is not supported");
    return 0;
}

/* A key after which the text breaks off would otherwise be reported first, as an unknown key. What
 * is too deep is left to the next pass, because libyaml's time grows with the square of the depth.
 */
static int check_syntax(struct yaml_reading *reading)
{
    int depth = 0;
    do {
        if (advance(reading) < 0)
            return -1;
        yaml_event_type_t type = reading->event.type;
        depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
        depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
    } while (depth <= DEPTH_MAX && reading->event.type != YAML_STREAM_END_EVENT);
    return 0;
}

static int read_pass(struct yaml_reading *reading, const char *bytes, size_t length,
                     int (*pass)(struct yaml_reading *reading))
{
    if (yaml_parser_initialize(&reading->parser) == 0)
        return error_status(reading->err, STATUS_LAUNCHER, "%s: out of memory", reading->file);
    yaml_parser_set_input_string(&reading->parser, (const unsigned char *)bytes, length);
    int rc = pass(reading);
    yaml_event_delete(&reading->event);
    yaml_parser_delete(&reading->parser);
    return rc;
}

int config_yaml_read(const char *bytes, size_t length, const char *file, struct settings *settings,
                     struct error *err)
{
    struct error unused = ERROR_INIT;
    struct yaml_reading reading = {
        .file = file, .settings = settings, .err = err == NULL ? &unused : err};
    if (read_pass(&reading, bytes, length, check_syntax) < 0)
        return -1;
    return read_pass(&reading, bytes, length, read_stream);
}
