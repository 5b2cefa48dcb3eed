/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/texts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "cli/control_show.h"

#define VALUE_MAX ((size_t)1 << 20)
#define NAME_COLUMNS 34
#define VALUE_COLUMNS 24
#define MASK "***"

/* Secrets */

/* Is `word` inside, or, if `part`, one of the parts that are separated by '_' and the like? KEY is
 * a part of AWS_KEY, and not of MONKEY. */
static bool has_word(const char *name, size_t length, const char *word, bool part)
{
    size_t wanted = strlen(word);
    for (size_t at = 0; at + wanted <= length; at++) {
        bool begins = at == 0 || !isalnum((unsigned char)name[at - 1]);
        bool ends = at + wanted == length || !isalnum((unsigned char)name[at + wanted]);
        if (strncasecmp(name + at, word, wanted) == 0 && (!part || (begins && ends)))
            return true;
    }
    return false;
}

static bool is_secret(const char *name, size_t length)
{
    static const char *const words[] = {"token",      "secret",     "passw",
                                        "passphrase", "credential", "apikey"};
    static const char *const parts[] = {"key", "auth", "pass", "cookie"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (has_word(name, length, words[i], false))
            return true;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (has_word(name, length, parts[i], true))
            return true;
    }
    return length > strlen("_pwd") && has_word(name, length, "pwd", true); /* MYSQL_PWD */
}

/* The length of the password in "://USER:PASSWORD@HOST" and where it begins. 0: there is none. */
static size_t url_password(const char *text, size_t length, size_t *begin)
{
    const char *scheme = memmem(text, length, "://", 3);
    if (scheme == NULL)
        return 0;
    const char *user = scheme + 3;
    size_t rest = length - (size_t)(user - text), end = 0, colon = 0;
    while (end < rest && strchr("@/ \t", user[end]) == NULL)
        end++;
    if (end == rest || user[end] != '@')
        return 0;
    while (colon < end && user[colon] != ':')
        colon++;
    *begin = (size_t)(user - text) + colon + 1;
    return colon < end ? end - colon - 1 : 0;
}

/* One word, or a whole NAME=VALUE. */
static void put_word(const char *word, size_t length, struct buf *out)
{
    const char *sign = memchr(word, '=', length);
    size_t name = sign == NULL ? 0 : (size_t)(sign - word), begin = 0;
    size_t password = url_password(word, length, &begin);
    if (sign != NULL && name + 1 < length && is_secret(word, name)) {
        buf_printf(out, "%.*s=" MASK, (int)name, word);
    } else if (password > 0) {
        buf_append(out, word, begin);
        buf_puts(out, MASK);
        buf_append(out, word + begin + password, length - begin - password);
    } else {
        buf_append(out, word, length);
    }
}

void show_config_masked(const char *value, bool whole, struct buf *out)
{
    bool after_name = false; /* as in --token VALUE */
    if (whole) {
        put_word(value, strlen(value), out);
        return;
    }
    while (*value != '\0') {
        size_t blanks = strspn(value, " \t"), length = strcspn(value + blanks, " \t");
        buf_append(out, value, blanks);
        value += blanks;
        if (after_name && *value != '-' && length > 0)
            buf_puts(out, MASK);
        else
            put_word(value, length, out);
        after_name =
            *value == '-' && memchr(value, '=', length) == NULL && is_secret(value, length);
        value += length;
    }
}

/* Lines */

/* The length of FILE:LINE in "FILE:LINE: KEY"; the first column has the key. */
static size_t without_key(const char *place)
{
    size_t length = strlen(place), end = length;
    for (const char *at = strstr(place, ": "); at != NULL; at = strstr(at + 1, ": "))
        end = (size_t)(at - place);
    return strchr(place + end, '/') == NULL ? end : length;
}

static void put_source(const struct setting_origin *origin, struct buf *out)
{
    const char *place = origin->place;
    switch (origin->source) {
    case SOURCE_DEFAULT: buf_puts(out, "default"); break;
    case SOURCE_USER_FILE:
    case SOURCE_FILE: buf_append(out, place, without_key(place)); break;
    case SOURCE_ENVIRONMENT: buf_printf(out, "variable %s", place); break;
    case SOURCE_FLAG: buf_printf(out, "command line %s", place); break;
    }
}

static void put_line(const char *name, const char *value, const struct setting_origin *origin,
                     struct buf *out)
{
    struct buf shown AUTO_BUF = BUF_INIT(VALUE_MAX), source AUTO_BUF = BUF_INIT(VALUE_MAX);
    bool quoted = value != NULL && (*value == '\0' || strpbrk(value, " \t") != NULL);
    buf_puts(&shown, quoted ? "\"" : "");
    control_show_text(value == NULL ? "-" : value, &shown);
    buf_puts(&shown, quoted ? "\"" : "");
    put_source(origin, &source);
    buf_printf(out, "%-*s  %-*s  ", NAME_COLUMNS, name, VALUE_COLUMNS, buf_text(&shown));
    control_show_text(buf_text(&source), out);
    buf_putc(out, '\n');
}

/* A later item gives the same variable. */
static bool is_overridden(const struct strv *list, size_t index)
{
    const char *item = list->items[index];
    size_t name = strcspn(item, "=");
    for (size_t i = index + 1; i < list->count; i++) {
        if (strcspn(list->items[i], "=") == name && strncmp(list->items[i], item, name) == 0)
            return true;
    }
    return false;
}

static void put_list(const struct settings *settings, enum option_id id, const char *name,
                     struct buf *out)
{
    const struct strv *list = settings_list(settings, id);
    for (size_t i = 0; i < list->count; i++) {
        struct buf value AUTO_BUF = BUF_INIT(VALUE_MAX);
        if (id == OPT_env && is_overridden(list, i))
            continue;
        show_config_masked(list->items[i], id == OPT_env, &value);
        put_line(name, buf_text(&value), settings_item_origin(settings, id, i), out);
    }
    if (list->count == 0)
        put_line(name, NULL, &settings->origins[id], out);
}

static void put_option(const struct settings *settings, enum option_id id, struct buf *out)
{
    char name[OPTION_NAME_MAX];
    struct buf text AUTO_BUF = BUF_INIT(VALUE_MAX), value AUTO_BUF = BUF_INIT(VALUE_MAX);
    option_name(id, name);
    if (option_info(id)->type == OPTION_LIST) {
        put_list(settings, id, name, out);
        return;
    }
    bool has_value = settings_format(settings, id, &text) == 0;
    show_config_masked(buf_text(&text), false, &value);
    put_line(name, has_value ? buf_text(&value) : NULL, &settings->origins[id], out);
}

void show_config_text(const struct settings *settings, struct buf *out)
{
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_group group = option_info((enum option_id)i)->group;
        if (group != GROUP_ABOUT && group != GROUP_FOREIGN)
            put_option(settings, (enum option_id)i, out);
    }
}
