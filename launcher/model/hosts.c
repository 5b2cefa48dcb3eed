/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/host_entry.h"

#define FIRST_INDEX_ROOM 64

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && is_blank((*text)[0])) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && is_blank((*text)[*length - 1]))
        (*length)--;
}

/* Up to the comma that ends the entry: commas in brackets belong to a range. */
static size_t entry_length(const char *text)
{
    bool inside = false;
    size_t length = 0;
    for (; text[length] != '\0' && (inside || text[length] != ','); length++) {
        if (text[length] == '[')
            inside = true;
        else if (text[length] == ']')
            inside = false;
    }
    return length;
}

int hosts_parse(const char *text, struct host_list *out, struct error *err)
{
    size_t budget = HOSTS_RANGE_MAX;
    if (strspn(text, " \t\r\n") == strlen(text))
        return error_status(err, STATUS_USAGE,
                            "the host list is empty; expected hosts as in a:4,b:4");
    const char *at = text;
    for (size_t number = 1;; number++) {
        size_t whole = entry_length(at), length = whole;
        const char *start = at;
        trim(&start, &length);
        if (length == 0)
            return error_status(err, STATUS_USAGE,
                                "host list '%s': entry %zu is empty; remove the extra comma",
                                host_entry_show(text, strlen(text)).text, number);
        struct host_entry entry;
        if (host_entry_split(start, length, &entry, err) < 0 ||
            host_entry_add(&entry, &budget, out, err) < 0)
            return error_wrap(err, "host '%s'", host_entry_show(start, length).text);
        if (at[whole] == '\0')
            return 0;
        at += whole + 1;
    }
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && !is_blank(*at) && *at != '=')
        at++;
    return at;
}

static bool word_is(const char *word, const char *end, const char *name)
{
    return (size_t)(end - word) == strlen(name) && memcmp(word, name, (size_t)(end - word)) == 0;
}

/* The keys that may stand after a host's name. */
enum key { KEY_SLOTS, KEY_MAX_SLOTS, KEY_USER, KEY_PORT, KEY_ADDRESS, KEY_TOTAL };

static const char *const key_names[KEY_TOTAL] = {"slots", "max_slots", "user", "port", "address"};

static enum key find_key(const char *word, const char *end)
{
    int key = 0;
    while (key < KEY_TOTAL && !word_is(word, end, key_names[key]))
        key++;
    if (key == KEY_TOTAL && word_is(word, end, "max-slots"))
        return KEY_MAX_SLOTS;
    return (enum key)key;
}

static int take_value(struct host_entry *entry, enum key key, const char *value, size_t length,
                      struct error *err)
{
    switch (key) {
    case KEY_SLOTS:
        entry->slots_given = true;
        return host_entry_slots(value, length, &entry->slots, err);
    case KEY_MAX_SLOTS: return host_entry_slots(value, length, &entry->max_slots, err);
    case KEY_USER:
        entry->user = value;
        entry->user_length = length;
        return 0; /* checked with those of user@host */
    case KEY_PORT: return host_entry_port(value, length, &entry->port, err);
    case KEY_ADDRESS: return host_entry_address(entry, value, length, err);
    case KEY_TOTAL: break;
    }
    return 0;
}

static bool is_said(const struct host_entry *entry, enum key key)
{
    switch (key) {
    case KEY_SLOTS: return entry->slots_given;
    case KEY_MAX_SLOTS: return entry->max_slots > 0;
    case KEY_USER: return entry->user != NULL;
    case KEY_PORT: return entry->port > 0;
    case KEY_ADDRESS: return entry->address != NULL;
    case KEY_TOTAL: break;
    }
    return false;
}

/* `slots=4 max_slots=8 user=ann` after the name, in any order, each at most once. */
static int parse_attributes(const char *at, const char *end, struct host_entry *entry,
                            struct error *err)
{
    at = skip_blanks(at, end);
    while (at < end) {
        const char *word = at, *word_end = skip_word(at, end);
        const char *equals = skip_blanks(word_end, end);
        enum key key = find_key(word, word_end);
        if (key == KEY_TOTAL || equals == end || *equals != '=')
            return error_status(err, STATUS_USAGE,
                                "'%s' is unknown here; expected slots=N, max_slots=N, user=NAME, "
                                "port=N or address=NAME",
                                host_entry_show(word, (size_t)(end - word)).text);
        if (is_said(entry, key))
            return error_status(err, STATUS_USAGE, "%s twice; expected one", key_names[key]);
        const char *value = skip_blanks(equals + 1, end), *value_end = skip_word(value, end);
        if (take_value(entry, key, value, (size_t)(value_end - value), err) < 0)
            return -1;
        at = skip_blanks(value_end, end);
    }
    if (entry->max_slots > 0 && entry->max_slots < entry->slots)
        return error_status(err, STATUS_USAGE,
                            "max_slots=%d is less than slots=%d; expected at least as many",
                            entry->max_slots, entry->slots);
    return 0;
}

struct parsing {
    struct host_list *list;
    size_t budget;
    bool any; /* a line named a host */
};

/* One line without its end. Returns -1 with a text that does not name the line yet. */
static int parse_line(struct parsing *file, const char *text, size_t length, struct error *err)
{
    const char *comment = memchr(text, '#', length);
    if (comment != NULL)
        length = (size_t)(comment - text);
    trim(&text, &length);
    if (length == 0)
        return 0;
    const char *end = text + length, *name_end = skip_word(text, end);
    struct host_entry entry;
    size_t name_length = (size_t)(name_end - text);
    if (name_length == 0)
        return error_status(err, STATUS_USAGE, "no host name; expected HOST slots=N or HOST:N");
    if (host_entry_split(text, name_length, &entry, err) < 0 ||
        parse_attributes(name_end, end, &entry, err) < 0)
        return -1;
    file->any = true;
    return host_entry_add(&entry, &file->budget, file->list, err);
}

int hosts_parse_file(const char *bytes, size_t length, const char *file, struct host_list *out,
                     struct error *err)
{
    struct parsing parsing = {.list = out, .budget = HOSTS_RANGE_MAX};
    const char *end = bytes + length, *at = bytes;
    if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        at += 3; /* editors on other systems write a byte order mark */
    if (length > 0 && memchr(bytes, '\0', length) != NULL)
        return error_status(err, STATUS_USAGE,
                            "%s is not a text file: it holds a NUL byte; expected one host per "
                            "line",
                            file);
    for (size_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((stop == NULL ? end : stop) - at);
        if (parse_line(&parsing, at, line, err) < 0) {
            trim(&at, &line);
            return error_wrap(err, "%s:%zu: '%s'", file, number, host_entry_show(at, line).text);
        }
        at = stop == NULL ? end : stop + 1;
    }
    if (!parsing.any)
        return error_status(err, STATUS_USAGE,
                            "%s names no host; expected one per line, as in 'node1 slots=4'", file);
    return 0;
}

static size_t hash(const char *name)
{
    uint64_t value = 14695981039346656037u; /* FNV-1a */
    for (; *name != '\0'; name++)
        value = (value ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(value ^ (value >> 32));
}

/* The place of this name in the index: where it is, or the free place where it belongs. */
static size_t find_place(const struct host_list *list, const char *name)
{
    size_t mask = list->index_room - 1, place = hash(name) & mask;
    while (list->index[place] != 0 && strcmp(list->items[list->index[place] - 1].name, name) != 0)
        place = (place + 1) & mask;
    return place;
}

/* Room for one more host in both tables; the index stays at most half full. */
static void grow(struct host_list *list)
{
    if (list->count >= list->room) {
        list->room = list->count < 8 ? 16 : list->count * 2;
        list->items = mem_resize_array(list->items, list->room, sizeof(*list->items));
    }
    if ((list->count + 1) * 2 <= list->index_room)
        return;
    while (list->index_room < (list->count + 1) * 2)
        list->index_room = list->index_room > 0 ? list->index_room * 2 : FIRST_INDEX_ROOM;
    free(list->index);
    list->index = mem_array(list->index_room, sizeof(*list->index));
    for (size_t i = 0; i < list->count; i++)
        list->index[find_place(list, list->items[i].name)] = (uint32_t)(i + 1);
}

struct host *hosts_add(struct host_list *list, const char *name, int slots, bool slots_given)
{
    grow(list);
    size_t place = find_place(list, name);
    if (list->index[place] == 0) {
        list->items[list->count++] =
            (struct host){.name = mem_strdup(name), .slots = slots, .slots_given = slots_given};
        list->index[place] = (uint32_t)list->count;
        return &list->items[list->count - 1];
    }
    struct host *host = &list->items[list->index[place] - 1];
    host->slots = slots > INT_MAX - host->slots ? INT_MAX : host->slots + slots;
    host->slots_given = host->slots_given || slots_given;
    return host;
}

const struct host *hosts_find(const struct host_list *list, const char *name)
{
    if (list->index_room == 0)
        return NULL;
    uint32_t position = list->index[find_place(list, name)];
    return position == 0 ? NULL : &list->items[position - 1];
}

int hosts_slots(const struct host_list *list)
{
    int64_t total = 0;
    for (size_t i = 0; i < list->count; i++)
        total += list->items[i].slots;
    return total > INT_MAX ? INT_MAX : (int)total;
}

void hosts_destroy(struct host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        host_traits_clear(&list->items[i].traits);
    }
    free(list->items);
    free(list->index);
    *list = (struct host_list){0};
}
