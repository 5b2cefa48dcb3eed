/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/sections.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/strv.h"
#include "transport/ssh/config_line.h"

struct section {
    struct strv patterns; /* none: it is for every host */
    bool personal;        /* it names the host */
};

struct ssh_sections {
    struct section *items;
    size_t count, room;
    bool doubtful;
};

struct ssh_sections *ssh_sections_create(void)
{
    return mem_alloc(sizeof(struct ssh_sections));
}

void ssh_sections_destroy(struct ssh_sections *sections)
{
    if (sections == NULL)
        return;
    for (size_t i = 0; i < sections->count; i++)
        strv_destroy(&sections->items[i].patterns);
    free(sections->items);
    free(sections);
}

void ssh_sections_doubt(struct ssh_sections *sections)
{
    sections->doubtful = true;
}

static void add(struct ssh_sections *sections, char *const *patterns)
{
    if (sections->count == sections->room) {
        sections->room = sections->room == 0 ? 8 : sections->room * 2;
        sections->items =
            mem_resize_array(sections->items, sections->room, sizeof(*sections->items));
    }
    struct section *section = &sections->items[sections->count++];
    *section = (struct section){.patterns = STRV_INIT};
    strv_copy(&section->patterns, patterns);
}

void ssh_sections_begin(struct ssh_sections *sections)
{
    add(sections, NULL);
}

/* Who cares about letters' case, and who does not, differs among versions. */
static bool has_capitals(const char *text)
{
    while (*text != '\0' && !isupper((unsigned char)*text))
        text++;
    return *text != '\0';
}

static void add_host(struct ssh_sections *sections, const char *value)
{
    struct strv patterns AUTO_STRV = STRV_INIT;
    /* What fnmatch() or OpenSSH may take for more than a character, or for a comment. */
    if (value[0] == '\0' || strpbrk(value, "\"'\\[#\r") != NULL || has_capitals(value))
        ssh_sections_doubt(sections);
    while (*value != '\0') {
        size_t length = strcspn(value, " \t");
        strv_add_n(&patterns, value, length);
        value += length + strspn(value + length, " \t");
    }
    add(sections, strv_items(&patterns));
}

/* Has a token of OpenSSH's where it matters. */
static bool has_token(const char *line)
{
    static const char *const not_ours[] = {"ControlPath", "LocalCommand", "RemoteCommand", NULL};
    const char *value;
    for (size_t i = 0; not_ours[i] != NULL; i++) {
        if (ssh_config_line_is(line, not_ours[i], &value))
            return false;
    }
    return strchr(line, '%') != NULL;
}

/* Not one that OpenSSH would read in another way than ssh_config_line_is(): Ho"st", =Host. */
static bool begins_with_a_word(const char *line)
{
    size_t length = 0;
    while (isalnum((unsigned char)line[length]))
        length++;
    return length > 0 && strchr(" \t=", line[length]) != NULL; /* the end, too */
}

static void read_line(struct ssh_sections *sections, const char *line,
                      void (*include)(void *context, const char *value), void *context)
{
    const char *value;
    if (line[0] == '\0' || line[0] == '#')
        return;
    if (!begins_with_a_word(line) || strncasecmp(line, "Canonical", strlen("Canonical")) == 0 ||
        ssh_config_line_is(line, "Match", &value)) {
        ssh_sections_doubt(sections);
    } else if (ssh_config_line_is(line, "Host", &value)) {
        add_host(sections, value);
    } else if (ssh_config_line_is(line, "Include", &value)) {
        include(context, value);
    } else if (ssh_config_line_is(line, "HostName", &value) || has_token(line)) {
        sections->items[sections->count - 1].personal = true;
    }
}

void ssh_sections_read(struct ssh_sections *sections, const char *text, size_t length,
                       void (*include)(void *context, const char *value), void *context)
{
    struct strv around AUTO_STRV = STRV_INIT;
    strv_copy(&around, strv_items(&sections->items[sections->count - 1].patterns));
    for (char *line = NULL; ssh_config_line_next(&text, &length, &line);) {
        char *owned AUTO_FREE = line;
        if (owned == NULL)
            ssh_sections_doubt(sections);
        else
            read_line(sections, owned, include, context);
    }
    add(sections, strv_items(&around)); /* what includes this file goes on, or another file of it */
}

static bool section_matches(const struct section *section, const char *host)
{
    bool matches = section->patterns.count == 0;
    for (size_t i = 0; i < section->patterns.count; i++) {
        const char *pattern = section->patterns.items[i];
        bool negated = pattern[0] == '!';
        if (fnmatch(pattern + negated, host, FNM_NOESCAPE) != 0)
            continue;
        if (negated)
            return false;
        matches = true;
    }
    return matches;
}

char *ssh_sections_class(const struct ssh_sections *sections, const char *host)
{
    if (sections->doubtful || strchr(host, '%') != NULL || has_capitals(host))
        return NULL;
    char *class AUTO_FREE = mem_alloc(sections->count + 1);
    for (size_t i = 0; i < sections->count; i++) {
        bool matches = section_matches(&sections->items[i], host);
        if (matches && sections->items[i].personal)
            return NULL;
        class[i] = matches ? '1' : '0';
    }
    return mem_strdup(class);
}
