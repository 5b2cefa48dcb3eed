/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sources.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/cli_test.h"
#include "cli/spelling.h"
#include "model/settings/ini_lines.h"
#include "model/settings/settings.h"
#include "model/settings/suggest.h"

#define PREFIX "HVDRUN_"

/* Appends the option that is near, by the names that `name_of` gives them. */
static void suggest_option(const char *typed,
                           const char *(*name_of)(enum option_id id, char out[OPTION_NAME_MAX]),
                           struct buf *out)
{
    struct suggest suggest;
    suggest_init(&suggest, typed, strlen(typed));
    for (int i = 0; i < OPT_TOTAL; i++) {
        char known[OPTION_NAME_MAX];
        if ((option_info((enum option_id)i)->flags & FLAG_CLI) == 0)
            suggest_offer(&suggest, name_of((enum option_id)i, known));
    }
    suggest_append(&suggest, out);
}

static void warn_unknown(const char *name, struct strv *warnings)
{
    struct buf line AUTO_BUF = BUF_INIT(512);
    buf_printf(&line, "the variable %.100s is not an option of hvdrun", name);
    suggest_option(name, option_variable, &line);
    strv_add(warnings, buf_text(&line));
}

/* Names of lower precedence (HOROVOD_START_TIMEOUT) go first, so that HVDRUN_ names override them.
 */
static int apply_one(const char *pair, bool ours, struct settings *settings, struct strv *warnings,
                     struct error *err)
{
    size_t length = strcspn(pair, "=");
    bool prefixed = strncmp(pair, PREFIX, strlen(PREFIX)) == 0;
    enum option_id id = option_of_variable(pair, length);
    if (prefixed != ours || pair[length] == '\0' || (id == OPT_TOTAL && !ours))
        return 0;
    char *name AUTO_FREE = mem_strndup(pair, length);
    if (id == OPT_TOTAL) {
        if (!option_variable_is_reserved(pair, length))
            warn_unknown(name, warnings);
        return 0;
    }
    if (pair[length + 1] == '\0')
        return 0;
    if (settings_set(settings, id, pair + length + 1, SOURCE_ENVIRONMENT, name, err) == 0)
        return 0;
    if (err != NULL)
        err->status = STATUS_USAGE;
    return -1;
}

int env_options_apply(char *const *envp, struct settings *settings, struct strv *warnings,
                      struct error *err)
{
    for (int ours = 0; ours <= 1; ours++) {
        for (size_t i = 0; envp[i] != NULL; i++) {
            if (apply_one(envp[i], ours != 0, settings, warnings, err) < 0)
                return -1;
        }
    }
    return 0;
}

/*
 * INI configuration. Each group of options has a section (launch, output, tune, elastic, ssh). Its
 * keys are the names of the long options. [env] has variables for the workers. Comments start with
 * # or ; at the beginning of a line, or with ; after a blank.
 */

#define NAME_LONGEST 48 /* longer than the name of any section or key */

struct ini_reading {
    const struct ini_place *place; /* of the current line */
    enum setting_source source;
    struct settings *settings;
    struct error *err;
};

static int fail(const struct ini_reading *reading, const char *text)
{
    return error_usage(reading->err, "%s:%d: %s", reading->place->file, reading->place->line, text);
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

static int unknown_section(const struct ini_reading *reading, const char *section)
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
    return fail(reading, buf_text(&text));
}

static int unknown_key(const struct ini_reading *reading, const char *section, const char *key)
{
    struct buf text AUTO_BUF = BUF_INIT(512);
    buf_printf(&text, "unknown key '%s' in section [%s]", key, section);
    suggest_option(key, option_name, &text);
    return fail(reading, buf_text(&text));
}

/* The option of a key. The key is any long spelling of the option, with '-' or '_'. */
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

static int no_section(const struct ini_reading *reading, const char *key)
{
    enum option_id id = OPT_TOTAL;
    const char *home = find_option(key, &id) ? option_group_section(option_info(id)->group) : NULL;
    char *text AUTO_FREE =
        mem_printf("'%s' is not below a section: put it below %s[%s]", key,
                   home == NULL ? "one such as " : "", home == NULL ? "launch" : home);
    return fail(reading, text);
}

static bool is_variable_name(const char *name)
{
    if (isdigit((unsigned char)name[0]))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

static int set_variable(const struct ini_reading *reading, const char *name, const char *value,
                        const char *place)
{
    if (!is_variable_name(name))
        return fail(reading, "this is not the name of a variable");
    char *pair AUTO_FREE = mem_printf("%s=%s", name, value);
    return settings_set(reading->settings, OPT_env, pair, reading->source, place, reading->err);
}

static int set_option(const struct ini_reading *reading, const char *section, const char *key,
                      const char *value, const char *place)
{
    enum option_id id = OPT_TOTAL;
    if (!find_option(key, &id))
        return unknown_key(reading, section, key);
    const char *home = option_group_section(option_info(id)->group);
    if (home == NULL || strcmp(home, section) != 0) {
        char *text AUTO_FREE = mem_printf("'%s' belongs in section [%s]", key, home);
        return fail(reading, text);
    }
    if (id == OPT_config_file)
        return fail(reading, "a configuration file cannot name another one");
    char *where AUTO_FREE = mem_printf("%s: %s", place, key);
    if (settings_set(reading->settings, id, value, reading->source, where, reading->err) == 0)
        return 0;
    reading->err->status = STATUS_USAGE;
    return -1;
}

static int take_pair(void *context, const struct ini_place *place, const char *section,
                     const char *key, const char *value, struct error *err)
{
    struct ini_reading *reading = context;
    reading->place = place;
    reading->err = err;
    if (strlen(section) >= NAME_LONGEST || strlen(key) >= NAME_LONGEST)
        return fail(reading, "the name is too long");
    if (section[0] == '\0')
        return no_section(reading, key);
    if (!is_section(section))
        return unknown_section(reading, section);
    char *where AUTO_FREE = mem_printf("%s:%d", place->file, place->line);
    if (strcmp(section, "env") == 0)
        return set_variable(reading, key, value, where);
    return set_option(reading, section, key, value, where);
}

int config_ini_read(const char *text, const char *file, enum setting_source source,
                    struct settings *settings, struct error *err)
{
    static const struct ini_reader reader = {.pair = take_pair};
    struct ini_reading reading = {.source = source, .settings = settings};
    return ini_lines_read(text, file, &reader, &reading, err);
}

/* The files. */

#define FILE_LIMIT ((size_t)1 << 20)

static int read_config(const char *path, struct buf *bytes, struct error *err)
{
    if (fd_read_file(path, bytes, err) < 0)
        return error_wrap_usage(err, "configuration");
    if (memchr(buf_text(bytes), '\0', bytes->length) != NULL)
        return error_usage(err, "%s is not a text file: it contains a NUL byte", path);
    return 0;
}

int config_file_user(char *const *envp, struct settings *settings, struct error *err)
{
    const char *base = env_value(envp, "XDG_CONFIG_HOME");
    const char *home = env_value(envp, "HOME");
    char *path AUTO_FREE = NULL;
    struct buf bytes AUTO_BUF = BUF_INIT(FILE_LIMIT);
    if (base != NULL && base[0] == '/')
        path = mem_printf("%s/hvdrun/config.ini", base);
    else if (home != NULL && home[0] == '/')
        path = mem_printf("%s/.config/hvdrun/config.ini", home);
    if (path == NULL)
        return 0;
    struct error why = ERROR_INIT;
    if (read_config(path, &bytes, &why) < 0) {
        struct stat info;
        bool is_there = why.errnum != ENOENT && why.errnum != ENOTDIR;
        /* after su or setpriv, HOME may still be the folder of another user */
        if (!is_there || (why.errnum == EACCES && stat(path, &info) < 0))
            return 0;
        if (err != NULL)
            *err = why;
        return -1;
    }
    return config_ini_read(buf_text(&bytes), path, SOURCE_USER_FILE, settings, err);
}

static bool ends_with(const char *path, const char *const *endings)
{
    const char *dot = strrchr(path, '.');
    for (; dot != NULL && *endings != NULL; endings++) {
        if (strcasecmp(dot, *endings) == 0)
            return true;
    }
    return false;
}

/* The first line that is not empty or a comment decides: in YAML it has a ':' before any '=' or
 * '['. */
static bool looks_like_yaml(const char *text)
{
    while (*text != '\0') {
        text += strspn(text, " \t\r\n");
        if (*text != '#' && *text != ';' && *text != '\0') {
            size_t sign = strcspn(text, "[=:\n");
            return text[sign] == ':' || strncmp(text, "---", 3) == 0;
        }
        text += strcspn(text, "\n");
    }
    return false;
}

int config_file_named(const char *path, struct settings *settings, struct error *err)
{
    static const char *const yaml[] = {".yaml", ".yml", NULL};
    static const char *const ini[] = {".ini", ".cfg", ".conf", NULL};
    struct buf bytes AUTO_BUF = BUF_INIT(FILE_LIMIT);
    if (read_config(path, &bytes, err) < 0)
        return -1;
    bool is_yaml = ends_with(path, yaml);
    if (!is_yaml && !ends_with(path, ini))
        is_yaml = looks_like_yaml(buf_text(&bytes));
    if (is_yaml)
        return config_yaml_read(buf_text(&bytes), bytes.length, path, settings, err);
    return config_ini_read(buf_text(&bytes), path, SOURCE_FILE, settings, err);
}
