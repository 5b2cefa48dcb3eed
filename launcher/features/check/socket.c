/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/socket.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "model/net/address.h"

bool check_socket_address(const char *text, uint32_t port, struct sockaddr_storage *address,
                          socklen_t *length)
{
    struct network_address parsed;
    if (port > UINT16_MAX || !network_address_parse(text, &parsed))
        return false;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    memcpy(&four.sin_addr, parsed.bytes, sizeof(four.sin_addr));
    memcpy(&six.sin6_addr, parsed.bytes, sizeof(six.sin6_addr));
    *length = parsed.ipv6 ? sizeof(six) : sizeof(four);
    memset(address, 0, sizeof(*address));
    memcpy(address, parsed.ipv6 ? (const void *)&six : (const void *)&four, *length);
    return true;
}

uint32_t check_socket_own(int fd, char *text)
{
    struct sockaddr_storage own = {0};
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    socklen_t length = sizeof(own);
    text[0] = '\0';
    if (getsockname(fd, (struct sockaddr *)&own, &length) < 0)
        return 0;
    memcpy(&four, &own, sizeof(four));
    memcpy(&six, &own, sizeof(six));
    bool ipv6 = own.ss_family == AF_INET6;
    const void *bytes = ipv6 ? (const void *)&six.sin6_addr : (const void *)&four.sin_addr;
    if (inet_ntop(own.ss_family, bytes, text, INET6_ADDRSTRLEN) == NULL)
        text[0] = '\0';
    return ntohs(ipv6 ? six.sin6_port : four.sin_port);
}

void check_token_answer(const uint8_t token[CHECK_TOKEN], uint8_t answer[CHECK_TOKEN])
{
    for (int i = 0; i < CHECK_TOKEN; i++)
        answer[i] = (uint8_t)~token[i];
}

void check_count_put(uint64_t count, uint8_t out[CHECK_COUNT])
{
    count = htobe64(count);
    memcpy(out, &count, sizeof(count));
}

uint64_t check_count_get(const uint8_t in[CHECK_COUNT])
{
    uint64_t count;
    memcpy(&count, in, sizeof(count));
    return be64toh(count);
}
