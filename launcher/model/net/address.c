/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/address.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

/* Made by container engines, hypervisors, Kubernetes networks and VPNs. */
static const char *const virtual_names[] = {
    "docker*", "br-*",   "virbr*",  "veth*",    "vnet*",         "vmnet*",  "vboxnet*",   "lxcbr*",
    "lxdbr*",  "cni*",   "podman*", "nerdctl*", "flannel*",      "cali*",   "cilium*",    "lxc*",
    "weave*",  "vxlan*", "kube-*",  "ovs-*",    "nodelocaldns*", "dummy*",  "tun*",       "tap*",
    "utun*",   "wg*",    "ppp*",    "gre*",     "sit*",          "ip6tnl*", "tailscale*", "zt*"};

static int width(const struct network_address *address)
{
    return address->ipv6 ? 128 : 32;
}

static enum network_class classify(const struct network_address *address)
{
    const uint8_t *b = address->bytes;
    if (address->ipv6) {
        struct in6_addr bytes;
        memcpy(&bytes, b, sizeof(bytes));
        if (IN6_IS_ADDR_LOOPBACK(&bytes))
            return NETWORK_LOOPBACK;
        if (IN6_IS_ADDR_LINKLOCAL(&bytes))
            return NETWORK_UNUSABLE;
    } else if (b[0] == 127) {
        return NETWORK_LOOPBACK;
    } else if (b[0] == 169 && b[1] == 254) {
        return NETWORK_LINK_LOCAL;
    }
    for (size_t i = 0; i < sizeof(virtual_names) / sizeof(virtual_names[0]); i++) {
        if (fnmatch(virtual_names[i], address->iface, 0) == 0)
            return NETWORK_VIRTUAL;
    }
    return NETWORK_ORDINARY;
}

bool network_address_parse(const char *text, struct network_address *out)
{
    char plain[INET6_ADDRSTRLEN] = "";
    bool bracket = text[0] == '[';
    text += bracket;
    size_t length = strcspn(text, "%]");
    if (length == 0 || length >= sizeof(plain) ||
        strcmp(text + strcspn(text, "]"), bracket ? "]" : "") != 0)
        return false;
    memcpy(plain, text, length);
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    *out = (struct network_address){.prefix = 32};
    if (bracket || inet_pton(AF_INET, plain, out->bytes) != 1) {
        if (inet_pton(AF_INET6, plain, out->bytes) != 1)
            return false;
        out->ipv6 = memcmp(out->bytes, mapped, sizeof(mapped)) != 0;
        if (out->ipv6) {
            out->prefix = 128;
        } else {
            memmove(out->bytes, out->bytes + sizeof(mapped), 4);
            memset(out->bytes + 4, 0, sizeof(mapped));
        }
    }
    out->fitness = classify(out);
    return inet_ntop(out->ipv6 ? AF_INET6 : AF_INET, out->bytes, out->text, sizeof(out->text)) !=
           NULL;
}

bool network_address_set(struct network_address *out, const char *iface, const char *text,
                         int prefix)
{
    if (!network_address_parse(text, out))
        return false;
    snprintf(out->iface, sizeof(out->iface), "%s", iface);
    if (prefix >= 0 && prefix <= width(out))
        out->prefix = prefix;
    out->fitness = classify(out);
    return true;
}

bool network_address_parse_line(const char *line, struct network_address *out)
{
    char iface[sizeof(out->iface)] = "", text[INET6_ADDRSTRLEN] = "";
    size_t name = strcspn(line, " ");
    if (name == 0 || name >= sizeof(iface) || line[name] != ' ')
        return false;
    memcpy(iface, line, name);
    const char *at = line + name + 1;
    size_t length = strcspn(at, "/");
    if (length >= sizeof(text))
        return false;
    memcpy(text, at, length);
    int64_t prefix = -1;
    if (at[length] == '/' && parse_int(at + length + 1, 0, 128, &prefix, NULL) < 0)
        return false;
    return network_address_set(out, iface, text, (int)prefix) && prefix <= width(out);
}

bool network_address_equal(const struct network_address *a, const struct network_address *b)
{
    return a->ipv6 == b->ipv6 && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool network_address_within(const struct network_address *address,
                            const struct network_address *network, int prefix)
{
    if (address->ipv6 != network->ipv6)
        return false;
    size_t whole = (size_t)prefix / 8;
    if (memcmp(address->bytes, network->bytes, whole) != 0)
        return false;
    int rest = prefix % 8;
    return rest == 0 || (address->bytes[whole] ^ network->bytes[whole]) >> (8 - rest) == 0;
}

bool network_address_same_subnet(const struct network_address *a, const struct network_address *b)
{
    return a->prefix == b->prefix && network_address_within(a, b, a->prefix);
}

char *network_address_subnet(const struct network_address *address)
{
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++) {
        int kept = address->prefix - 8 * i;
        unsigned mask = kept >= 8 ? 0xffu : kept <= 0 ? 0u : (0xffu << (8 - kept)) & 0xffu;
        bytes[i] = (uint8_t)(address->bytes[i] & mask);
    }
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(address->ipv6 ? AF_INET6 : AF_INET, bytes, text, sizeof(text));
    return mem_printf("%s/%d", text, address->prefix);
}

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
            return error_usage(err,
                               "--network-interfaces: '%.60s' is not an interface (examples: eth0, "
                               "'ib*', 10.0.0.0/8, '!docker0')",
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
