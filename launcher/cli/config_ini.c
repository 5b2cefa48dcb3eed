/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inih reads the lines, through a reader of ours that counts them (its handler is not told) and
 * takes away indentation, which inih would read as a continuation of the line before. inih cuts
 * lines at a length chosen when it was built (200 bytes): of a longer one it gets the key only, and
 * the value is kept beside it.
 */
#include "cli/config_ini.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/spelling.h"
#include "cli/suggest.h"

#define SECTION_MAX 48 /* what inih keeps of a section's or key's name */

struct reading {
    const char *rest; /* of the text */
    const char *file;
    int line;
    char *long_value; /* owned; the value of the current line when that line is long */
    bool failed;      /* err is filled */
    enum setting_source source;
    struct settings *settings;
    struct error *err;
};

static void fail(struct reading *reading, const char *text)
{
    if (!reading->failed)
        error_status(reading->err, STATUS_USAGE, "%s:%d: %s", reading->file, reading->line, text);
    reading->failed = true;
}

/* The value of a long line as inih would have cut it out: trimmed, without the comment. */
static char *trimmed(const char *value, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        if (value[i] == ';' && isspace((unsigned char)value[i - 1]))
            length = i;
    }
    while (length > 0 && isspace((unsigned char)value[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*value)) {
        value++;
        length--;
    }
    return mem_strndup(value, length);
}

/* Writes the line to `out`, or "key=" and the rest to long_value. Returns the bytes written. */
static size_t put_line(struct reading *reading, const char *line, size_t length, char *out,
                       size_t room)
{
    free(reading->long_value);
    reading->long_value = NULL;
    if (length + 2 > room) {
        size_t key = strcspn(line, "=:\n");
        if (key + 3 > room || key >= length) {
            fail(reading, "the line is too long");
            return 0;
        }
        reading->long_value = trimmed(line + key + 1, length - key - 1);
        length = key + 1;
    }
    memcpy(out, line, length);
    return length;
}

/* One line for inih, as fgets() would give it. */
static char *next_line(char *out, int room, void *context)
{
    struct reading *reading = context;
    if (*reading->rest == '\0' || reading->failed)
        return NULL;
    reading->line++;
    reading->rest += strspn(reading->rest, " \t");
    const char *line = reading->rest;
    size_t length = strcspn(line, "\n");
    reading->rest += length + (line[length] == '\n');
    if (*line == '#' || *line == ';')
        length = 0;
    length = put_line(reading, line, length, out, (size_t)room);
    out[length] = '\n';
    out[length + 1] = '\0';
    return reading->failed ? NULL : out;
}

static bool is_section(const char *section)
{
    for (int i = 0; i < GROUP_TOTAL; i++) {
        const char *known = option_group_section((enum option_group)i);
        if (known != NULL && strcmp(known, section) == 0)
            return true;
    }
    return strcmp(section, "env") == 0;
}

static void unknown_section(struct reading *reading, const char *section)
{
    struct buf text AUTO_BUF = BUF_INIT(512);
    struct suggest suggest;
    suggest_init(&suggest, section, strlen(section));
    suggest_offer(&suggest, "env");
    for (int i = 0; i < GROUP_TOTAL; i++) {
        const char *known = option_group_section((enum option_group)i);
        if (known != NULL)
            suggest_offer(&suggest, known);
    }
    buf_printf(&text, "unknown section [%s]", section);
    suggest_append(&suggest, &text);
    fail(reading, buf_text(&text));
}

static void unknown_key(struct reading *reading, const char *section, const char *key)
{
    struct buf text AUTO_BUF = BUF_INIT(512);
    struct suggest suggest;
    suggest_init(&suggest, key, strlen(key));
    for (int i = 0; i < OPT_TOTAL; i++) {
        char name[OPTION_NAME_MAX];
        const struct option_info *info = option_info((enum option_id)i);
        if ((info->flags & FLAG_CLI) == 0)
            suggest_offer(&suggest, option_name((enum option_id)i, name));
    }
    buf_printf(&text, "unknown key '%s' in section [%s]", key, section);
    suggest_append(&suggest, &text);
    fail(reading, buf_text(&text));
}

/* The option of a key: its long name in any of its spellings, '_' for '-' allowed. */
static bool find_option(const char *key, enum option_id *id)
{
    struct spelling spelling;
    char word[OPTION_NAME_MAX];
    snprintf(word, sizeof(word), "--%s", key);
    for (char *at = word; *at != '\0'; at++)
        *at = *at == '_' ? '-' : *at;
    if (!spelling_find(word, strlen(word), true, &spelling) || !spelling.takes_value)
        return false;
    *id = spelling.id;
    return (option_info(spelling.id)->flags & FLAG_CLI) == 0;
}

static bool is_variable_name(const char *name)
{
    if (isdigit((unsigned char)name[0]))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

static int set_variable(struct reading *reading, const char *name, const char *value,
                        const char *place)
{
    if (!is_variable_name(name)) {
        fail(reading, "this is not the name of a variable");
        return 0;
    }
    char *pair AUTO_FREE = mem_printf("%s=%s", name, value);
    return settings_set(reading->settings, OPT_env, pair, reading->source, place, reading->err) ==
           0;
}

static int set_option(struct reading *reading, const char *section, const char *key,
                      const char *value, const char *place)
{
    enum option_id id = OPT_TOTAL;
    if (!find_option(key, &id)) {
        unknown_key(reading, section, key);
        return 0;
    }
    const char *home = option_group_section(option_info(id)->group);
    if (home == NULL || strcmp(home, section) != 0) {
        char *text AUTO_FREE = mem_printf("'%s' belongs into section [%s]", key, home);
        fail(reading, text);
        return 0;
    }
    if (id == OPT_config_file) {
        fail(reading, "a configuration file cannot name another one");
        return 0;
    }
    char *where AUTO_FREE = mem_printf("%s: %s", place, key);
    if (settings_set(reading->settings, id, value, reading->source, where, reading->err) < 0) {
        reading->failed = true;
        reading->err->status = STATUS_USAGE;
        return 0;
    }
    return 1;
}

/* inih: 1 is success. */
static int take_pair(void *context, const char *section, const char *key, const char *value)
{
    struct reading *reading = context;
    char *place AUTO_FREE = mem_printf("%s:%d", reading->file, reading->line);
    if (reading->failed)
        return 0;
    if (reading->long_value != NULL)
        value = reading->long_value;
    if (strlen(section) >= SECTION_MAX || strlen(key) >= SECTION_MAX) {
        fail(reading, "the name is too long");
        return 0;
    }
    if (!is_section(section)) {
        unknown_section(reading, section);
        return 0;
    }
    if (strcmp(section, "env") == 0)
        return set_variable(reading, key, value, place);
    return set_option(reading, section, key, value, place);
}

int config_ini_read(const char *text, const char *file, enum setting_source source,
                    struct settings *settings, struct error *err)
{
    struct error reason = ERROR_INIT;
    struct reading reading = {.rest = text,
                              .file = file,
                              .source = source,
                              .settings = settings,
                              .err = err == NULL ? &reason : err};
    int line = ini_parse_stream(next_line, &reading, take_pair, &reading);
    free(reading.long_value);
    /* inih goes on after a line that it cannot read, so something behind it may have failed too */
    bool unreadable = line > 0 && (!reading.failed || line < reading.line);
    if (unreadable)
        return error_status(err, STATUS_USAGE, "%s:%d: expected [section] or key = value", file,
                            line);
    if (line < 0 && !reading.failed)
        return error_status(err, STATUS_LAUNCHER, "%s: out of memory", file);
    return reading.failed ? -1 : 0;
}
