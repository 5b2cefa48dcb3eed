/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"
#include "model/hosts/hostlist_range.h"

size_t host_entry_length(const char *text, size_t length)
{
    bool inside = false;
    size_t at = 0;
    for (; at < length && (inside || text[at] != ','); at++) {
        if (text[at] == '[')
            inside = true;
        else if (text[at] == ']')
            inside = false;
    }
    return at;
}

static int take_slots(const char *text, size_t length, struct host_entry *out, struct error *err)
{
    return host_key_read(HOST_KEY_SLOTS, text, length, &out->said.values[HOST_KEY_SLOTS], err);
}

/* `[fe80::1]` or `[fe80::1]:2`; `close` is the bracket that ends the address. */
static int split_ipv6(const char *text, size_t length, const char *close, struct host_entry *out,
                      struct error *err)
{
    out->name = text + 1;
    out->name_length = (size_t)(close - out->name);
    out->ipv6 = true;
    if (!host_is_ipv6(out->name, out->name_length))
        return error_usage(err,
                           "not an IPv6 address in the brackets; expected one as in [fe80::1]:4");
    const char *after = close + 1;
    size_t left = length - (size_t)(after - text);
    if (left == 0)
        return 0;
    if (*after != ':')
        return error_usage(err, "text after the bracket; expected :SLOTS as in [fe80::1]:4");
    return take_slots(after + 1, left - 1, out, err);
}

/* `text` begins with the host's name: what is in front of an @ is gone already. */
static int split_host(const char *text, size_t length, struct host_entry *out, struct error *err)
{
    out->name = text;
    out->name_length = length;
    if (length > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', length);
        if (close == NULL)
            return error_usage(err, "a bracket is not closed; expected [ADDRESS]:SLOTS or a range");
        if (memchr(text, ':', (size_t)(close - text)) != NULL)
            return split_ipv6(text, length, close, out, err);
    }
    const char *colon = memchr(text, ':', length);
    if (colon == NULL)
        return 0;
    size_t after = length - (size_t)(colon + 1 - text);
    if (memchr(colon + 1, ':', after) != NULL)
        return error_usage(err, "more than one colon; expected HOST:SLOTS, and an IPv6 address in "
                                "brackets, as in [fe80::1]:4");
    out->name_length = (size_t)(colon - text);
    return take_slots(colon + 1, after, out, err);
}

int host_entry_split(const char *text, size_t length, struct host_entry *out, struct error *err)
{
    *out = (struct host_entry){.name = NULL};
    const char *at = memchr(text, '@', length);
    if (at == NULL)
        return split_host(text, length, out, err);
    size_t user = (size_t)(at - text);
    if (split_host(at + 1, length - user - 1, out, err) < 0)
        return -1;
    return host_key_read(HOST_KEY_USER, text, user, &out->said.values[HOST_KEY_USER], err);
}

/* The number of the unit that set this key of a host. */
static uint32_t *said_at(struct host_adding *adding, const struct host *host, enum host_key key)
{
    size_t room = adding->list->room, position = (size_t)(host - adding->list->items);
    adding->said =
        mem_reach(adding->said, &adding->said_count, room * HOST_KEY_TOTAL, sizeof(*adding->said));
    return &adding->said[position * HOST_KEY_TOTAL + (size_t)key];
}

/* All slots of a host share its traits. */
static int agree(struct host_adding *adding, struct host *host, enum host_key key,
                 const struct host_value *value, struct error *err)
{
    uint32_t *number = said_at(adding, host, key);
    if (!host_key_is_set(host, key) && *number == 0) { /* gpus=0 is said, and not set */
        host_key_put(host, key, value);
        *number = adding->number;
        return 0;
    }
    if (!host_key_differs(host, key, value))
        return 0;
    const char *name = host_key_name(key);
    return error_usage(
        err, "this host has the %s '%s' already (%s %u), here it is '%s'; expected one %s per host",
        name, host_key_show(host, key).text, adding->unit, *number,
        plain_show(value->text, value->length).text, name);
}

int host_entry_check_name(const struct host_list *list, const char *name, struct error *err)
{
    if (!name_is_safe(name, strlen(name)))
        return error_usage(err, "not a host name; expected letters, digits, '.', '_', '%%' and "
                                "'-', the first one not '-'");
    if (list->count >= HOSTS_MAX && hosts_find(list, name) == NULL)
        return error_usage(err, "more than %d hosts; expected fewer", HOSTS_MAX);
    return 0;
}

/* A host of which only its GPUs are known has a slot for each of them. They count once, even if the
 * host is named again. A host with gpus=0 has one slot. */
static struct host_value slots_of(const struct host_said *said, const struct host *before)
{
    struct host_value slots = said->values[HOST_KEY_SLOTS];
    if (slots.text != NULL || said->values[HOST_KEY_GPUS].text == NULL)
        return slots;
    slots = said->values[HOST_KEY_GPUS];
    slots.number = slots.number > 0 ? slots.number : 1;
    if (before != NULL && before->traits.gpus > 0)
        slots.number = 0;
    return slots;
}

static int add_name(void *context, const char *name, struct error *err)
{
    struct host_adding *adding = context;
    const struct host_said *said = &adding->entry->said;
    if (host_entry_check_name(adding->list, name, err) < 0)
        return -1;
    struct host_value slots = slots_of(said, hosts_find(adding->list, name));
    bool given = slots.text != NULL;
    struct host *host = hosts_add(adding->list, name, given ? slots.number : 1, given);
    for (enum host_key key = HOST_KEY_SLOTS + 1; key < HOST_KEY_TOTAL; key++) {
        if (said->values[key].text != NULL && agree(adding, host, key, &said->values[key], err) < 0)
            return -1;
    }
    if (host->max_slots > 0 && host->max_slots < host->slots)
        return error_usage(err, "max_slots=%d is less than slots=%d; expected at least as many",
                           host->max_slots, host->slots);
    return 0;
}

int host_entry_add(const struct host_entry *entry, struct host_adding *adding, struct error *err)
{
    adding->entry = entry;
    if (memchr(entry->name, '\0', entry->name_length) != NULL)
        return error_usage(err, "a NUL byte; expected a host name");
    if (entry->ipv6) {
        char *name AUTO_FREE = mem_strndup(entry->name, entry->name_length);
        return add_name(adding, name, err);
    }
    if (entry->said.values[HOST_KEY_ADDRESS].text != NULL &&
        memchr(entry->name, '[', entry->name_length) != NULL)
        return error_usage(err, "one address for a range of hosts; expected a line for each host");
    return hostlist_expand(entry->name, entry->name_length, &adding->budget, add_name, adding, err);
}

void host_adding_end(struct host_adding *adding)
{
    mem_free_at(&adding->said);
    adding->said_count = 0;
}

/* "a:4 b:4" and "a=4", as other programs have them. */
static int check_separators(const char *text, size_t length, struct error *err)
{
    const char *equals = memchr(text, '=', length);
    bool blank = memchr(text, ' ', length) != NULL || memchr(text, '\t', length) != NULL;
    if (blank && memchr(text, '@', length) == NULL)
        return error_usage(err, "host '%s': a blank; put commas between hosts, as in a:4,b:4",
                           plain_show(text, length).text);
    if (equals != NULL && name_is_safe(text, (size_t)(equals - text)))
        return error_usage(err, "host '%s': '=' in a host; put a colon before the slots, as in a:4",
                           plain_show(text, length).text);
    return 0;
}

static int add_entry(struct host_adding *adding, const char *list, const char *text, size_t length,
                     struct error *err)
{
    struct host_entry entry;
    if (length == 0)
        return error_usage(err, "host list '%s': entry %u is empty; remove the extra comma",
                           plain_show(list, strlen(list)).text, adding->number);
    if (check_separators(text, length, err) < 0)
        return -1;
    if (host_entry_split(text, length, &entry, err) < 0 || host_entry_add(&entry, adding, err) < 0)
        return error_wrap(err, "host '%s'", plain_show(text, length).text);
    return 0;
}

int hosts_parse(const char *text, struct host_list *out, struct error *err)
{
    struct host_adding adding = {.list = out, .budget = HOSTS_RANGE_MAX, .unit = "entry"};
    size_t left = strlen(text);
    if (strspn(text, " \t\r\n") == left)
        return error_usage(err, "the host list is empty; expected hosts as in a:4,b:4");
    const char *at = text;
    int result = 0;
    for (bool more = true; more && result == 0;) {
        size_t whole = host_entry_length(at, left), length = whole;
        const char *start = at;
        text_trim(&start, &length);
        adding.number++;
        result = add_entry(&adding, text, start, length, err);
        more = whole < left;
        at += whole + 1;
        left -= more ? whole + 1 : 0;
    }
    host_adding_end(&adding);
    return result;
}
