/* SPDX-License-Identifier: Apache-2.0 */
#include "io/listen_address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"

#define PORT_MAX 65535
#define PATH_PREFIX "unix:"

static int parse_path(const char *path, struct listen_address *out, struct error *err)
{
    struct sockaddr_un *at = &out->at.local;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(at->sun_path))
        return error_status(err, STATUS_USAGE, "the path of a socket has 1 to %zu bytes",
                            sizeof(at->sun_path) - 1);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path, path, length + 1);
    out->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    out->is_path = true;
    return 0;
}

/* The address without its brackets. */
static bool set_host(const char *host, uint16_t port, struct listen_address *out)
{
    if (inet_pton(AF_INET, host, &out->at.v4.sin_addr) == 1) {
        out->at.v4.sin_family = AF_INET;
        out->at.v4.sin_port = htons(port);
        out->length = sizeof(out->at.v4);
        return true;
    }
    struct in6_addr address;
    if (inet_pton(AF_INET6, host, &address) != 1)
        return false;
    out->at.v6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = address};
    out->length = sizeof(out->at.v6);
    return true;
}

int listen_address_parse(const char *text, struct listen_address *out, struct error *err)
{
    *out = (struct listen_address){.length = 0};
    if (strncmp(text, PATH_PREFIX, strlen(PATH_PREFIX)) == 0)
        return parse_path(text + strlen(PATH_PREFIX), out, err);
    if (strchr(text, '/') != NULL)
        return parse_path(text, out, err);
    const char *colon = strrchr(text, ':');
    const char *port_text = colon == NULL ? text : colon + 1;
    char *host AUTO_FREE =
        colon == NULL ? mem_strdup("127.0.0.1") : mem_strndup(text, (size_t)(colon - text));
    size_t length = strlen(host);
    bool bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';
    if (bracketed) {
        memmove(host, host + 1, length - 2);
        host[length - 2] = '\0';
    }
    int64_t port = 0;
    const char *where = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    bool is_v6 = strchr(where, ':') != NULL;
    if (parse_int(port_text, 0, PORT_MAX, &port, NULL) == 0 && is_v6 == bracketed &&
        set_host(where, (uint16_t)port, out))
        return 0;
    return error_status(err, STATUS_USAGE,
                        "'%s' is not an address to listen on; expected PORT, ADDRESS:PORT with a "
                        "numeric address, or the path of a socket",
                        text);
}

char *listen_address_url(const struct listen_address *address)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->is_path)
        return mem_printf(PATH_PREFIX "%s", address->at.local.sun_path);
    if (address->at.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->at.v4.sin_addr, text, sizeof(text));
        return mem_printf("http://%s:%d", text, (int)ntohs(address->at.v4.sin_port));
    }
    inet_ntop(AF_INET6, &address->at.v6.sin6_addr, text, sizeof(text));
    return mem_printf("http://[%s]:%d", text, (int)ntohs(address->at.v6.sin6_port));
}
