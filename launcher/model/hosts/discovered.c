/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/discovered.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostfile.h"

/* `host:0`, and how long the text is without the number. */
static bool says_zero(const char *text, size_t length, size_t *without)
{
    size_t at = length;
    while (at > 0 && text[at - 1] == '0')
        at--;
    *without = at > 0 ? at - 1 : 0;
    return at < length && at > 1 && text[at - 1] == ':';
}

/* Puts the hosts of one line in place of what earlier lines said about them; 0 slots: none. */
static void replace(struct host_list *list, struct host_list *line, bool none)
{
    for (size_t i = 0; i < line->count; i++) {
        struct host *from = &line->items[i];
        struct host *to = hosts_add(list, from->name, 0, false);
        to->slots = none ? 0 : from->slots;
        to->slots_given = from->slots_given;
        to->max_slots = from->max_slots;
        host_traits_copy(&to->traits, &from->traits);
    }
}

static void fill_slots(struct host_list *list, int slots_per_host)
{
    for (size_t i = 0; slots_per_host > 0 && i < list->count; i++) {
        struct host *host = &list->items[i];
        if (host->slots_given)
            continue;
        int64_t slots = (int64_t)host->slots * slots_per_host;
        host->slots = slots > INT_MAX ? INT_MAX : (int)slots;
    }
}

static int parse_line(const char *text, size_t length, int slots_per_host, size_t *budget,
                      struct host_list *list, struct error *err)
{
    struct host_entry entry;
    struct host_list line = {0};
    size_t shorter = 0;
    bool none = says_zero(text, length, &shorter);
    struct text_rest rest = text_rest_of(text, length);
    const char *host = NULL;
    if (text_take_word(&rest, ' ', &host) < length)
        return error_usage(err, "text after the host; expected HOST or HOST:SLOTS, one per line");
    if (host_entry_split(text, none ? shorter : length, &entry, err) < 0)
        return -1;
    struct host_adding adding = {.list = &line, .budget = *budget, .unit = "line"};
    int result = host_entry_add(&entry, &adding, err);
    *budget = adding.budget;
    host_adding_end(&adding);
    fill_slots(&line, slots_per_host);
    if (result == 0)
        replace(list, &line, none);
    hosts_destroy(&line);
    if (result == 0 && list->count > DISCOVERED_HOSTS_MAX)
        return error_usage(err, "more than %d hosts; expected fewer", DISCOVERED_HOSTS_MAX);
    return result;
}

int discovered_parse(const char *bytes, size_t length, int slots_per_host, struct host_list *out,
                     struct error *err)
{
    struct host_list all = {0};
    size_t budget = HOSTS_RANGE_MAX;
    const char *end = bytes + length, *at = bytes, *text = NULL;
    size_t line = 0;
    int result = 0;
    if (length > DISCOVERED_BYTES_MAX)
        return error_usage(err, "the list of hosts has %zu bytes; expected at most %zu", length,
                           DISCOVERED_BYTES_MAX);
    for (size_t number = 1; result == 0 && text_next_line(&at, end, &text, &line); number++) {
        text_trim_comment(&text, &line);
        if (line > 0 && parse_line(text, line, slots_per_host, &budget, &all, err) < 0)
            result = error_wrap(err, "line %zu: '%s'", number, plain_show(text, line).text);
    }
    for (size_t i = 0; result == 0 && i < all.count; i++) {
        if (all.items[i].slots > 0)
            hosts_add_copy(out, &all.items[i]);
    }
    hosts_destroy(&all);
    return result;
}

int discovered_parse_file(const char *bytes, size_t length, const char *file, int slots_per_host,
                          struct host_list *out, struct error *err)
{
    const struct hostfile text = {.bytes = bytes, .length = length, .name = file};
    int result = hostfile_parse(&text, out, err);
    if (result == 0 && out->count > DISCOVERED_HOSTS_MAX)
        result =
            error_usage(err, "%s: more than %d hosts; expected fewer", file, DISCOVERED_HOSTS_MAX);
    if (result < 0)
        hosts_destroy(out);
    else
        fill_slots(out, slots_per_host);
    return result;
}

bool discovered_same(const struct host_list *a, const struct host_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct host *one = &a->items[i], *other = hosts_find(b, one->name);
        if (other == NULL || one->slots != other->slots ||
            !host_traits_equal(&one->traits, &other->traits))
            return false;
    }
    return true;
}
