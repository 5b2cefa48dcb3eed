/* SPDX-License-Identifier: Apache-2.0 */
#include "node/is_local.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/facts.h"

static bool is_interface_address(const char *text)
{
    struct node_address *addresses = NULL;
    size_t count = node_addresses_read(&addresses), i = 0;
    while (i < count && strcmp(addresses[i].text, text) != 0)
        i++;
    node_addresses_destroy(addresses, count);
    return i < count;
}

/* A numeric address: written in the one form that interfaces are listed in. */
static bool is_own_address(int family, const void *bytes)
{
    struct in6_addr six = {0};
    struct in_addr four = {0};
    if (family == AF_INET6) {
        memcpy(&six, bytes, sizeof(six));
        if (IN6_IS_ADDR_LOOPBACK(&six))
            return true;
        if (IN6_IS_ADDR_V4MAPPED(&six))
            return is_own_address(AF_INET, &six.s6_addr[12]);
    } else {
        memcpy(&four, bytes, sizeof(four));
        if (ntohl(four.s_addr) >> 24 == 127)
            return true;
    }
    char text[INET6_ADDRSTRLEN];
    if (inet_ntop(family, bytes, text, sizeof(text)) == NULL)
        return false;
    return is_interface_address(text);
}

static bool is_own_name(const char *name)
{
    static const char *const usual[] = {"localhost",  "localhost.localdomain", "localhost4",
                                        "localhost6", "ip6-localhost",         "ip6-loopback"};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (strcasecmp(name, usual[i]) == 0)
            return true;
    }
    char own[256] = "";
    if (gethostname(own, sizeof(own) - 1) < 0 || own[0] == '\0')
        return false;
    size_t first_label = strcspn(own, ".");
    return strcasecmp(name, own) == 0 ||
           (strlen(name) == first_label && strncasecmp(name, own, first_label) == 0);
}

enum local_answer is_local_obviously(const char *name)
{
    /* fe80::1%eth0: the scope names an interface here, the address is what counts */
    char plain[INET6_ADDRSTRLEN + 1] = "";
    size_t length = strcspn(name, "%");
    if (length < sizeof(plain))
        memcpy(plain, name, length);
    struct in6_addr bytes;
    if (inet_pton(AF_INET, plain, &bytes) == 1)
        return is_own_address(AF_INET, &bytes) ? LOCAL_YES : LOCAL_NO;
    if (inet_pton(AF_INET6, plain, &bytes) == 1)
        return is_own_address(AF_INET6, &bytes) ? LOCAL_YES : LOCAL_NO;
    return is_own_name(name) ? LOCAL_YES : LOCAL_UNKNOWN;
}

bool is_local_address(const struct sockaddr *address)
{
    struct sockaddr_in four = {0};
    struct sockaddr_in6 six = {0};
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&four, address, sizeof(four));
        return is_own_address(AF_INET, &four.sin_addr);
    case AF_INET6:
        memcpy(&six, address, sizeof(six));
        return is_own_address(AF_INET6, &six.sin6_addr);
    default: return false;
    }
}
