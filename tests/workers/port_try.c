/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_try: rank 0 tries to take MASTER_PORT as a stranger would (plain bind: "stranger refused" is
 * right), then as torch's store does (SO_REUSEADDR, bind, listen: "store listens"), and takes one
 * connection from each other rank, which connect to MASTER_ADDR:MASTER_PORT ("rank N met").
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "worker.h"

static int bound(uint16_t port, int reuse)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

static int serve(uint16_t port)
{
    const int stranger = bound(port, 0);
    dprintf(1, stranger < 0 ? "stranger refused\n" : "stranger got the port\n");
    if (stranger >= 0)
        close(stranger);
    const int fd = bound(port, 1);
    if (fd < 0 || listen(fd, 64) != 0) {
        dprintf(1, "store cannot listen: %s\n", strerror(errno));
        return 1;
    }
    dprintf(1, "store listens\n");
    for (int i = 1; i < world_size(); i++) {
        const int peer = accept(fd, NULL, NULL);
        char rank = 0;
        if (read(peer, &rank, 1) == 1)
            dprintf(1, "rank %d met\n", rank);
        close(peer);
    }
    return 0;
}

static int meet(const char *address, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(address, port, &hints, &found) != 0) {
        dprintf(1, "cannot resolve %s\n", address);
        return 1;
    }
    for (int attempt = 0; attempt < 500; attempt++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
            const char rank = (char)my_rank();
            write_all(fd, &rank, 1);
            freeaddrinfo(found);
            return 0;
        }
        close(fd);
        pause_ms(20);
    }
    dprintf(1, "cannot connect to %s:%s\n", address, port);
    return 1;
}

int main(void)
{
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    if (address == NULL || port == NULL)
        return 2;
    return my_rank() == 0 ? serve((uint16_t)to_number(port)) : meet(address, port);
}
