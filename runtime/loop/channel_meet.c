/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root sends an invitation through the engine: its port, its addresses, and a secret of two
 * halves. A member connects, and sends the first half and its set rank. The root answers with the
 * second half. So a program that is at the same address by chance is not taken for the root, nor
 * for a member.
 */
#include "loop/channel_meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/codec.h"

enum { HALF = 16, HELLO = HALF + 4, ADDRESSES_MAX = 32, CONNECT_MS = 3000, WAITING_MAX = 1024 };

struct invitation {
    unsigned char secret[2 * HALF];
    uint16_t port;
    struct in_addr addresses[ADDRESSES_MAX];
    size_t count;
};

static bool stopped(const struct channel_setup *setup)
{
    struct pollfd stop = {.fd = setup->stop, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

static enum hvd_status give_up(struct error *err)
{
    error_set(err, "a rank was lost before the members of a process set had met");
    return HVD_ERR_PEER_LOST;
}

/* ---- The root -------------------------------------------------------------------------------- */

static int listen_anywhere(uint16_t *port, struct error *err)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0 &&
        listen(fd, SOMAXCONN) == 0 && getsockname(fd, (struct sockaddr *)&name, &length) == 0) {
        *port = ntohs(name.sin_port);
        return fd;
    }
    error_errno(err, errno, "cannot listen for the members of a process set");
    fd_close(&fd);
    return -1;
}

/* Loopback comes last: on another host it is another machine. */
static void find_addresses(const char *interface, struct invitation *invitation)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *one = all; one != NULL && invitation->count < ADDRESSES_MAX - 1;
         one = one->ifa_next) {
        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET ||
            (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0 ||
            (interface != NULL && strcmp(interface, one->ifa_name) != 0))
            continue;
        invitation->addresses[invitation->count++] =
            ((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr;
    }
    if (all != NULL)
        freeifaddrs(all);
    invitation->addresses[invitation->count++].s_addr = htonl(INADDR_LOOPBACK);
}

static void write_invitation(const struct invitation *invitation, struct buf *out)
{
    buf_append(out, invitation->secret, sizeof invitation->secret);
    put_number(out, invitation->port);
    put_number(out, invitation->count);
    for (size_t i = 0; i < invitation->count; i++)
        put_number(out, ntohl(invitation->addresses[i].s_addr));
}

static int read_invitation(const struct buf *from, struct invitation *invitation)
{
    if (from->length < sizeof invitation->secret)
        return -1;
    memcpy(invitation->secret, buf_text(from), sizeof invitation->secret);
    struct reader in = {(const unsigned char *)buf_text(from) + sizeof invitation->secret,
                        from->length - sizeof invitation->secret, false};
    invitation->port = (uint16_t)get_number_below(&in, UINT16_MAX + 1);
    invitation->count = (size_t)get_number_below(&in, ADDRESSES_MAX + 1);
    for (size_t i = 0; i < invitation->count; i++)
        invitation->addresses[i].s_addr =
            htonl((uint32_t)get_number_below(&in, (uint64_t)UINT32_MAX + 1));
    return in.bad ? -1 : 0;
}

/* Someone who has connected, and has not said everything. */
struct guest {
    int fd;
    unsigned char hello[HELLO];
    size_t length;
};

/* 1: a member, whose set rank is in `rank`; 0: not yet; -1: not a member. */
static int hear(struct guest *guest, const struct invitation *invitation, int size, int *rank)
{
    ssize_t got =
        recv(guest->fd, guest->hello + guest->length, HELLO - guest->length, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    guest->length += (size_t)got;
    if (got == 0)
        return -1;
    if (guest->length < HELLO)
        return 0;
    uint32_t value = 0;
    for (size_t b = 0; b < 4; b++)
        value |= (uint32_t)guest->hello[HALF + b] << 8 * b;
    unsigned char differs = 0;
    for (size_t i = 0; i < HALF; i++)
        differs |= (unsigned char)(guest->hello[i] ^ invitation->secret[i]);
    *rank = (int)value;
    return differs == 0 && value >= 1 && value < (uint32_t)size ? 1 : -1;
}

static void prepare(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* Takes the guest in, or sends it away. Returns whether it is a new member. A member that comes
 * again has given up its first connection. */
static bool decide(struct guest *guest, const struct invitation *invitation, int size, int *fds)
{
    int rank, member = hear(guest, invitation, size, &rank);
    if (member == 0)
        return false;
    if (member < 0 || send(guest->fd, invitation->secret + HALF, HALF, MSG_NOSIGNAL) != HALF) {
        fd_close(&guest->fd);
        return false;
    }
    bool is_new = fds[rank - 1] < 0;
    fd_close(&fds[rank - 1]);
    prepare(guest->fd);
    fds[rank - 1] = guest->fd;
    guest->fd = -1;
    return is_new;
}

static int accept_all(int listener, const struct channel_setup *setup,
                      const struct invitation *invitation, int64_t deadline_ms, int *fds,
                      struct guest *guests, struct pollfd *polls)
{
    int missing = setup->size - 1, count = 0;
    while (missing > 0) {
        int64_t left = deadline_ms - clock_mono_ms();
        for (int i = 0; i < count; i++)
            polls[i] = (struct pollfd){.fd = guests[i].fd, .events = POLLIN};
        polls[count] = (struct pollfd){.fd = count < WAITING_MAX ? listener : -1, .events = POLLIN};
        polls[count + 1] = (struct pollfd){.fd = setup->stop, .events = POLLIN};
        if (left <= 0)
            break;
        if (poll(polls, (nfds_t)count + 2, (int)(left < 1000 ? left : 1000)) <= 0)
            continue;
        if (polls[count + 1].revents != 0)
            break;
        int fd = polls[count].revents != 0
                     ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
                     : -1;
        for (int i = 0; i < count; i++)
            if (polls[i].revents != 0 && decide(&guests[i], invitation, setup->size, fds))
                missing--;
        int kept = 0;
        for (int i = 0; i < count; i++)
            if (guests[i].fd >= 0)
                guests[kept++] = guests[i];
        count = kept;
        if (fd >= 0)
            guests[count++] = (struct guest){.fd = fd};
    }
    for (int i = 0; i < count; i++)
        fd_close(&guests[i].fd);
    return missing;
}

static enum hvd_status invite(const struct channel_setup *setup, int *fds, struct error *err)
{
    struct invitation invitation = {.count = 0};
    AUTO_BUF struct buf message = BUF_INIT(1 << 16);
    AUTO_FD int listener = -1;
    int64_t deadline_ms = clock_mono_ms() + setup->timeout_ms;
    if (getrandom(invitation.secret, sizeof invitation.secret, 0) !=
        (ssize_t)sizeof invitation.secret)
        error_errno(err, errno, "cannot get random bytes");
    else
        listener = listen_anywhere(&invitation.port, err);
    find_addresses(setup->interface, &invitation);
    if (listener >= 0)
        write_invitation(&invitation, &message);
    enum hvd_status status =
        setup->engine->broadcast_message(setup->comm, &message, setup->timeout_ms, err);
    if (listener < 0 || status != HVD_OK)
        return status != HVD_OK ? status : HVD_ERR_ENGINE;
    struct guest *guests AUTO_FREE = mem_array(WAITING_MAX + 1, sizeof *guests);
    struct pollfd *polls AUTO_FREE = mem_array(WAITING_MAX + 3, sizeof *polls);
    int missing = accept_all(listener, setup, &invitation, deadline_ms, fds, guests, polls);
    if (missing == 0)
        return HVD_OK;
    if (stopped(setup))
        return give_up(err);
    error_set(err, "%d of %d members of a process set did not connect within %lld ms", missing,
              setup->size - 1, (long long)setup->timeout_ms);
    return HVD_ERR_PEER_LOST;
}

/* ---- The other members ----------------------------------------------------------------------- */

/* Until the socket is ready, or the time is over. */
static bool ready(const struct channel_setup *setup, int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - clock_mono_ms();
        struct pollfd polls[2] = {{.fd = fd, .events = events},
                                  {.fd = setup->stop, .events = POLLIN}};
        if (left <= 0)
            return false;
        int rc = poll(polls, 2, (int)(left < 1000 ? left : 1000));
        if (rc > 0)
            return polls[1].revents == 0;
        if (rc < 0 && errno != EINTR)
            return false;
    }
}

static bool introduce(const struct channel_setup *setup, int fd,
                      const struct invitation *invitation, int64_t deadline_ms)
{
    unsigned char hello[HELLO], answer[HALF];
    size_t length = 0;
    memcpy(hello, invitation->secret, HALF);
    for (size_t b = 0; b < 4; b++)
        hello[HALF + b] = (unsigned char)((unsigned)setup->rank >> 8 * b);
    if (send(fd, hello, HELLO, MSG_NOSIGNAL) != HELLO)
        return false;
    while (length < HALF && ready(setup, fd, POLLIN, deadline_ms)) {
        ssize_t got = recv(fd, answer + length, HALF - length, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        length += got > 0 ? (size_t)got : 0;
    }
    return length == HALF && memcmp(answer, invitation->secret + HALF, HALF) == 0;
}

/* -1: the root is not there. */
static int connect_to(const struct channel_setup *setup, struct in_addr address,
                      const struct invitation *invitation, int64_t deadline_ms)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(invitation->port), .sin_addr = address};
    int failed = 0;
    socklen_t length = sizeof failed;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if ((connect(fd, (struct sockaddr *)&name, sizeof name) == 0 || errno == EINPROGRESS) &&
        ready(setup, fd, POLLOUT, deadline_ms) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length) == 0 && failed == 0 &&
        introduce(setup, fd, invitation, deadline_ms)) {
        prepare(fd);
        return fd;
    }
    fd_close(&fd);
    return -1;
}

static enum hvd_status accept_invitation(const struct channel_setup *setup, int *fd,
                                         struct error *err)
{
    struct invitation invitation = {.count = 0};
    AUTO_BUF struct buf message = BUF_INIT(1 << 16);
    int64_t deadline_ms = clock_mono_ms() + setup->timeout_ms;
    enum hvd_status status =
        setup->engine->broadcast_message(setup->comm, &message, setup->timeout_ms, err);
    if (status != HVD_OK)
        return status;
    if (read_invitation(&message, &invitation) != 0) {
        error_set(err, "the root of a process set could not invite its members");
        return HVD_ERR_PEER_LOST;
    }
    do {
        for (size_t i = 0; i < invitation.count && *fd < 0; i++) {
            int64_t until = clock_mono_ms() + CONNECT_MS;
            *fd = connect_to(setup, invitation.addresses[i], &invitation,
                             until < deadline_ms ? until : deadline_ms);
        }
        if (*fd < 0)
            poll(&(struct pollfd){.fd = setup->stop, .events = POLLIN}, 1, 100);
    } while (*fd < 0 && clock_mono_ms() < deadline_ms && !stopped(setup));
    if (*fd >= 0)
        return HVD_OK;
    if (stopped(setup))
        return give_up(err);
    error_set(err,
              "cannot connect to the root of a process set within %lld ms: if its host has several "
              "networks, name the right one in HOROVOD_GLOO_IFACE",
              (long long)setup->timeout_ms);
    return HVD_ERR_PEER_LOST;
}

enum hvd_status meet(const struct channel_setup *setup, int *fds, struct error *err)
{
    int count = setup->rank == 0 ? setup->size - 1 : 1;
    for (int i = 0; i < count; i++)
        fds[i] = -1;
    enum hvd_status status =
        setup->rank == 0 ? invite(setup, fds, err) : accept_invitation(setup, fds, err);
    for (int i = 0; i < count && status != HVD_OK; i++)
        fd_close(&fds[i]);
    return status;
}
