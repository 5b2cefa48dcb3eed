/* SPDX-License-Identifier: Apache-2.0 */
#include "model/host_entry.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/hostlist_range.h"

#define SHOWN_MAX (sizeof(((struct host_shown *)NULL)->text) - 4)

struct host_shown host_entry_show(const char *text, size_t length)
{
    struct host_shown shown = {{0}};
    size_t used = length < SHOWN_MAX ? length : SHOWN_MAX;
    for (size_t i = 0; i < used; i++)
        shown.text[i] = '?';
    for (size_t i = 0; i < used; i++)
        if (text[i] >= 0x20 && text[i] < 0x7f)
            shown.text[i] = text[i];
    if (length > used)
        memcpy(shown.text + used, "...", 4);
    return shown;
}

/* A number from 1 to `max`. The first character is looked at because parse_int takes a sign. */
static bool is_count(const char *text, size_t length, int64_t max, int *out)
{
    char digits[16] = "";
    int64_t value = 0;
    if (length < sizeof(digits))
        memcpy(digits, text, length);
    bool number = digits[0] >= '0' && digits[0] <= '9';
    if (!number || parse_int(digits, 1, max, &value, NULL) < 0)
        return false;
    *out = (int)value;
    return true;
}

int host_entry_slots(const char *text, size_t length, int *out, struct error *err)
{
    if (is_count(text, length, HOSTS_SLOTS_MAX, out))
        return 0;
    return error_status(err, STATUS_USAGE,
                        "'%s' is not a slot count; expected a whole number from 1 to %d",
                        host_entry_show(text, length).text, HOSTS_SLOTS_MAX);
}

int host_entry_port(const char *text, size_t length, int *out, struct error *err)
{
    if (is_count(text, length, 65535, out))
        return 0;
    return error_status(err, STATUS_USAGE,
                        "'%s' is not a port; expected a whole number from 1 to 65535",
                        host_entry_show(text, length).text);
}

static bool is_ipv6(const char *text, size_t length)
{
    char address[INET6_ADDRSTRLEN] = "";
    const char *scope = memchr(text, '%', length);
    size_t used = scope == NULL ? length : (size_t)(scope - text);
    if (used >= sizeof(address) || memchr(text, '\0', used) != NULL)
        return false;
    memcpy(address, text, used);
    struct in6_addr binary;
    bool scoped_well = scope == NULL || length - used > 1;
    return scoped_well && name_is_safe(text, length) && inet_pton(AF_INET6, address, &binary) == 1;
}

/* `[fe80::1]` or `[fe80::1]:2`; `close` is the bracket that ends the address. */
static int split_ipv6(const char *text, size_t length, const char *close, struct host_entry *out,
                      struct error *err)
{
    out->name = text + 1;
    out->name_length = (size_t)(close - out->name);
    out->ipv6 = true;
    if (!is_ipv6(out->name, out->name_length))
        return error_status(err, STATUS_USAGE,
                            "not an IPv6 address in the brackets; expected one as in [fe80::1]:4");
    const char *after = close + 1;
    size_t left = length - (size_t)(after - text);
    if (left == 0)
        return 0;
    if (*after != ':')
        return error_status(err, STATUS_USAGE,
                            "text after the bracket; expected :SLOTS as in [fe80::1]:4");
    out->slots_given = true;
    return host_entry_slots(after + 1, left - 1, &out->slots, err);
}

int host_entry_address(struct host_entry *entry, const char *text, size_t length, struct error *err)
{
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    const char *inside = brackets ? text + 1 : text;
    size_t used = brackets ? length - 2 : length;
    bool numeric = is_ipv6(inside, used);
    bool colon = memchr(inside, ':', used) != NULL;
    if (!name_is_safe(inside, used) || ((brackets || colon) && !numeric))
        return error_status(err, STATUS_USAGE,
                            "'%s' is not an address; expected a host name or a numeric address "
                            "(a port goes into port=N)",
                            host_entry_show(text, length).text);
    entry->address = inside;
    entry->address_length = used;
    return 0;
}

/* `text` begins with the host's name: what is in front of an @ is gone already. */
static int split_host(const char *text, size_t length, struct host_entry *out, struct error *err)
{
    out->name = text;
    out->name_length = length;
    if (length > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', length);
        if (close == NULL)
            return error_status(err, STATUS_USAGE,
                                "a bracket is not closed; expected [ADDRESS]:SLOTS or a range");
        if (memchr(text, ':', (size_t)(close - text)) != NULL)
            return split_ipv6(text, length, close, out, err);
    }
    const char *colon = memchr(text, ':', length);
    if (colon == NULL)
        return 0;
    size_t after = length - (size_t)(colon + 1 - text);
    if (memchr(colon + 1, ':', after) != NULL)
        return error_status(err, STATUS_USAGE,
                            "more than one colon; expected HOST:SLOTS, and an IPv6 address in "
                            "brackets, as in [fe80::1]:4");
    out->name_length = (size_t)(colon - text);
    out->slots_given = true;
    return host_entry_slots(colon + 1, after, &out->slots, err);
}

int host_entry_split(const char *text, size_t length, struct host_entry *out, struct error *err)
{
    *out = (struct host_entry){.slots = 1};
    const char *at = memchr(text, '@', length);
    if (at == NULL)
        return split_host(text, length, out, err);
    out->user = text;
    out->user_length = (size_t)(at - text);
    return split_host(at + 1, length - out->user_length - 1, out, err);
}

struct adding {
    struct host_list *list;
    const struct host_entry *entry;
};

/* Keeps what is said first; NULL and 0 say nothing. */
static int agree_text(char **has, const char *text, size_t length, const char *what,
                      struct error *err)
{
    if (text == NULL)
        return 0;
    char *said AUTO_FREE = mem_strndup(text, length);
    if (*has != NULL && strcmp(*has, said) != 0)
        return error_status(err, STATUS_USAGE,
                            "this host has the %s '%s' already, here it is '%s'; expected one %s "
                            "per host",
                            what, *has, said, what);
    if (*has == NULL)
        *has = mem_strdup(said);
    return 0;
}

static int add_name(void *context, const char *name, struct error *err)
{
    const struct adding *adding = context;
    const struct host_entry *entry = adding->entry;
    if (!name_is_safe(name, strlen(name)))
        return error_status(err, STATUS_USAGE,
                            "not a host name; expected letters, digits, '.', '_', '%%' and '-', "
                            "the first one not '-'");
    struct host *host = hosts_add(adding->list, name, entry->slots, entry->slots_given);
    struct host_traits *traits = &host->traits;
    if (agree_text(&traits->user, entry->user, entry->user_length, "user", err) < 0 ||
        agree_text(&traits->address, entry->address, entry->address_length, "address", err) < 0)
        return -1;
    if (entry->port > 0 && traits->port > 0 && entry->port != traits->port)
        return error_status(err, STATUS_USAGE,
                            "this host has the port %d already, here it is %d; expected one port "
                            "per host",
                            traits->port, entry->port);
    traits->port = entry->port > 0 ? entry->port : traits->port;
    return 0;
}

int host_entry_add(const struct host_entry *entry, size_t *budget, struct host_list *list,
                   struct error *err)
{
    struct adding adding = {.list = list, .entry = entry};
    if (memchr(entry->name, '\0', entry->name_length) != NULL)
        return error_status(err, STATUS_USAGE, "a NUL byte; expected a host name");
    if (entry->user != NULL && !name_is_safe(entry->user, entry->user_length))
        return error_status(err, STATUS_USAGE,
                            "'%s' is not a user name; expected letters, digits, '.', '_', '%%' and "
                            "'-', the first one not '-'",
                            host_entry_show(entry->user, entry->user_length).text);
    if (entry->ipv6) {
        char *name AUTO_FREE = mem_strndup(entry->name, entry->name_length);
        return add_name(&adding, name, err);
    }
    if (entry->address != NULL && memchr(entry->name, '[', entry->name_length) != NULL)
        return error_status(err, STATUS_USAGE,
                            "one address for a range of hosts; expected a line for each host");
    return hostlist_expand(entry->name, entry->name_length, budget, add_name, &adding, err);
}
