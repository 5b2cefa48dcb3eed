/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/filter.h"

#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

#include "base/parse.h"
#include "base/status.h"

enum answer { NO, YES, NAMED };

/* "10.0.0.0/8"; -1: it has a slash but is none. 0: it has no slash. */
static int parse_subnet(const char *word, struct network_address *network)
{
    char text[64] = "";
    const char *slash = strchr(word, '/');
    if (slash == NULL)
        return 0;
    size_t length = (size_t)(slash - word);
    int64_t prefix = 0;
    if (length >= sizeof(text))
        return -1;
    memcpy(text, word, length);
    if (!network_address_parse(text, network) ||
        parse_int(slash + 1, 0, network->ipv6 ? 128 : 32, &prefix, NULL) < 0)
        return -1;
    network->prefix = (int)prefix;
    return 1;
}

int network_filter_check(char *const *words, struct error *err)
{
    for (; words != NULL && *words != NULL; words++) {
        struct network_address network;
        const char *word = *words + (**words == '!' ? 1 : 0);
        if (*word == '\0' || *word == '!' || strpbrk(word, " \t\n") != NULL ||
            parse_subnet(word, &network) < 0)
            return error_status(err, STATUS_USAGE,
                                "--network-interfaces: '%.60s' is not an interface (examples: "
                                "eth0, 'ib*', 10.0.0.0/8, '!docker0')",
                                *words);
    }
    return 0;
}

bool network_filter_includes(char *const *words)
{
    bool found = false;
    for (; words != NULL && *words != NULL; words++)
        found = found || **words != '!';
    return found;
}

static enum answer word_fits(const char *word, const struct network_address *address)
{
    struct network_address network;
    if (strcmp(word, address->iface) == 0)
        return NAMED;
    int subnet = parse_subnet(word, &network);
    if (subnet > 0)
        return network_address_within(address, &network, network.prefix) ? YES : NO;
    if (network_address_parse(word, &network))
        return network_address_equal(address, &network) ? NAMED : NO;
    return fnmatch(word, address->iface, 0) == 0 ? YES : NO;
}

static bool excluded(char *const *words, const struct network_address *address)
{
    bool out = false;
    for (; words != NULL && *words != NULL; words++)
        out = out || (**words == '!' && word_fits(*words + 1, address) != NO);
    return out;
}

static bool is_there(const struct network_address *list, size_t count,
                     const struct network_address *address)
{
    size_t i = 0;
    while (i < count && (!network_address_equal(&list[i], address) ||
                         strcmp(list[i].iface, address->iface) != 0))
        i++;
    return i < count;
}

static size_t add(const struct network_address *address, enum answer answer, size_t count,
                  struct network_address *out)
{
    bool loopback = address->fitness == NETWORK_LOOPBACK && answer != NAMED;
    if (answer == NO || loopback || address->fitness == NETWORK_UNUSABLE ||
        is_there(out, count, address))
        return count;
    out[count] = *address;
    if (answer == NAMED)
        out[count].fitness = NETWORK_ORDINARY;
    return count + 1;
}

size_t network_filter_apply(char *const *words, const struct network_address *all, size_t count,
                            struct network_address *out)
{
    size_t kept = 0;
    bool includes = network_filter_includes(words);
    for (size_t i = 0; !includes && i < count; i++) {
        if (!excluded(words, &all[i]))
            kept = add(&all[i], YES, kept, out);
    }
    for (char *const *word = words; includes && *word != NULL; word++) {
        for (size_t i = 0; **word != '!' && i < count; i++) {
            if (!excluded(words, &all[i]))
                kept = add(&all[i], word_fits(*word, &all[i]), kept, out);
        }
    }
    return kept;
}
