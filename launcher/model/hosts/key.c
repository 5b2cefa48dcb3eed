/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/key.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"
#include "model/settings/words.h"

#define PATH_LONGEST 4095

/* Ours first: it is the one that messages use. */
static const struct {
    const char *name;
    enum host_key key;
} names[] = {
    {"slots", HOST_KEY_SLOTS},         {"max_slots", HOST_KEY_MAX_SLOTS},
    {"user", HOST_KEY_USER},           {"port", HOST_KEY_PORT},
    {"address", HOST_KEY_ADDRESS},     {"identity", HOST_KEY_IDENTITY},
    {"transport", HOST_KEY_TRANSPORT}, {"gpus", HOST_KEY_GPUS},
    {"wdir", HOST_KEY_WDIR},           {"count", HOST_KEY_SLOTS},
    {"cpu", HOST_KEY_SLOTS},           {"max-slots", HOST_KEY_MAX_SLOTS},
    {"slots-max", HOST_KEY_MAX_SLOTS}, {"slots_max", HOST_KEY_MAX_SLOTS},
    {"username", HOST_KEY_USER},       {"user-name", HOST_KEY_USER},
    {"user_name", HOST_KEY_USER},
};

static const char *const transports[] = {
#define NAME(value, word) [value] = (word),
    TRANSPORT_WORDS(NAME)
#undef NAME
};

enum host_key host_key_find(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (text_is(word, length, names[i].name))
            return names[i].key;
    }
    return HOST_KEY_TOTAL;
}

const char *host_key_name(enum host_key key)
{
    return names[key].name;
}

bool host_is_ipv6(const char *text, size_t length)
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

/* The first character is looked at because parse_int takes a sign. */
static int read_number(const char *text, size_t length, int64_t min, int64_t max, const char *what,
                       struct host_value *out, struct error *err)
{
    char digits[16] = "";
    int64_t value = 0;
    if (length < sizeof(digits))
        memcpy(digits, text, length);
    bool number = digits[0] >= '0' && digits[0] <= '9';
    if (!number || parse_int(digits, min, max, &value, NULL) < 0)
        return error_usage(err, "'%s' is not a %s; expected a whole number from %d to %d",
                           plain_show(text, length).text, what, (int)min, (int)max);
    *out = (struct host_value){text, length, (int)value};
    return 0;
}

static int read_user(const char *text, size_t length, struct host_value *out, struct error *err)
{
    if (!name_is_safe(text, length))
        return error_usage(err,
                           "'%s' is not a user name; expected letters, digits, '.', '_', '%%' and "
                           "'-', the first one not '-'",
                           plain_show(text, length).text);
    *out = (struct host_value){text, length, 0};
    return 0;
}

/* An IPv6 address may be in brackets. */
static int read_address(const char *text, size_t length, struct host_value *out, struct error *err)
{
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    const char *inside = brackets ? text + 1 : text;
    size_t used = brackets ? length - 2 : length;
    bool numeric = host_is_ipv6(inside, used);
    bool colon = memchr(inside, ':', used) != NULL;
    if (!name_is_safe(inside, used) || ((brackets || colon) && !numeric))
        return error_usage(err,
                           "'%s' is not an address; expected a host name or a numeric address (a "
                           "port goes into port=N)",
                           plain_show(text, length).text);
    *out = (struct host_value){inside, used, 0};
    return 0;
}

static int read_path(const char *text, size_t length, const char *what, struct host_value *out,
                     struct error *err)
{
    bool printable = length > 0 && length <= PATH_LONGEST;
    for (size_t i = 0; i < length && printable; i++)
        printable = (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
    if (!printable)
        return error_usage(err, "'%s' is not a path; expected the path of a %s",
                           plain_show(text, length).text, what);
    *out = (struct host_value){text, length, 0};
    return 0;
}

static int read_transport(const char *text, size_t length, struct host_value *out,
                          struct error *err)
{
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
        if (!text_is(text, length, transports[i]))
            continue;
        *out = (struct host_value){text, length, (int)i};
        return 0;
    }
    return error_usage(err,
                       "'%s' is not a transport; expected auto, local, ssh, ssh-cli, srun, "
                       "kubectl, docker or dial",
                       plain_show(text, length).text);
}

int host_key_read(enum host_key key, const char *text, size_t length, struct host_value *out,
                  struct error *err)
{
    switch (key) {
    case HOST_KEY_SLOTS:
    case HOST_KEY_MAX_SLOTS:
        return read_number(text, length, 1, HOSTS_SLOTS_MAX, "slot count", out, err);
    case HOST_KEY_USER: return read_user(text, length, out, err);
    case HOST_KEY_PORT: return read_number(text, length, 1, 65535, "port", out, err);
    case HOST_KEY_ADDRESS: return read_address(text, length, out, err);
    case HOST_KEY_IDENTITY: return read_path(text, length, "file with a private key", out, err);
    case HOST_KEY_TRANSPORT: return read_transport(text, length, out, err);
    case HOST_KEY_GPUS: return read_number(text, length, 0, 1024, "number of GPUs", out, err);
    case HOST_KEY_WDIR: return read_path(text, length, "folder", out, err);
    case HOST_KEY_TOTAL: break;
    }
    return error_usage(err, "an unknown key");
}

/* NULL: the key is none with a text. */
static char **text_of(struct host *host, enum host_key key)
{
    switch (key) {
    case HOST_KEY_USER: return &host->traits.user;
    case HOST_KEY_ADDRESS: return &host->traits.address;
    case HOST_KEY_IDENTITY: return &host->traits.identity;
    case HOST_KEY_WDIR: return &host->traits.wdir;
    default: return NULL;
    }
}

/* Of every other key. */
static int *number_of(struct host *host, enum host_key key)
{
    switch (key) {
    case HOST_KEY_MAX_SLOTS: return &host->max_slots;
    case HOST_KEY_PORT: return &host->traits.port;
    case HOST_KEY_TRANSPORT: return &host->traits.transport;
    case HOST_KEY_GPUS: return &host->traits.gpus;
    default: return &host->slots;
    }
}

bool host_key_is_set(const struct host *host, enum host_key key)
{
    char **text = text_of((struct host *)host, key);
    return text != NULL ? *text != NULL : *number_of((struct host *)host, key) != 0;
}

bool host_key_differs(const struct host *host, enum host_key key, const struct host_value *value)
{
    char **text = text_of((struct host *)host, key);
    if (text == NULL)
        return *number_of((struct host *)host, key) != value->number;
    return *text == NULL || strlen(*text) != value->length ||
           memcmp(*text, value->text, value->length) != 0;
}

void host_key_put(struct host *host, enum host_key key, const struct host_value *value)
{
    char **text = text_of(host, key);
    if (text == NULL) {
        *number_of(host, key) = value->number;
        return;
    }
    free(*text);
    *text = mem_strndup(value->text, value->length);
}

struct plain_shown host_key_show(const struct host *host, enum host_key key)
{
    char **text = text_of((struct host *)host, key);
    if (text != NULL)
        return plain_show(*text, strlen(*text));
    int number = *number_of((struct host *)host, key);
    if (key == HOST_KEY_TRANSPORT)
        return plain_show(transports[number], strlen(transports[number]));
    struct plain_shown shown;
    snprintf(shown.text, sizeof(shown.text), "%d", number);
    return shown;
}
