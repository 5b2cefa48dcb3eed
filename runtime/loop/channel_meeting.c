/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/channel_meeting.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "loop/channel_invitation.h"

#define LOCAL_NAME "hvd-"
enum { CONNECT_MS = 3000, AGAIN_MS = 100, TURN_MS = 1000, GUEST_MS = 2000, STRANGERS_MAX = 256 };

/* ---- A member -------------------------------------------------------------------------------- */

/* Until the socket is ready, or the time is over. */
static bool ready(const struct channel_setup *setup, int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - clock_mono_ms();
        struct pollfd polls[2] = {{.fd = fd, .events = events},
                                  {.fd = setup->stop, .events = POLLIN}};
        if (left <= 0)
            return false;
        int rc = poll(polls, 2, (int)(left < TURN_MS ? left : TURN_MS));
        if (rc > 0)
            return polls[1].revents == 0;
        if (rc < 0 && errno != EINTR)
            return false;
    }
}

static bool receive(const struct channel_setup *setup, int fd, void *bytes, size_t length,
                    int64_t deadline_ms)
{
    char *at = bytes;
    while (length > 0 && ready(setup, fd, POLLIN, deadline_ms)) {
        ssize_t got = recv(fd, at, length, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        at += got > 0 ? got : 0;
        length -= got > 0 ? (size_t)got : 0;
    }
    return length == 0;
}

/* Both sides prove that they know the secret. */
static bool introduce(const struct channel_setup *setup, int fd,
                      const struct invitation *invitation, size_t point, int64_t deadline_ms)
{
    struct introduction introduction = {.point = point, .rank = (uint32_t)setup->set.rank};
    uint8_t hello[HELLO_SIZE], welcome[HMAC_SIZE];
    if (getrandom(introduction.member_nonce, NONCE_SIZE, 0) != NONCE_SIZE ||
        !receive(setup, fd, introduction.root_nonce, NONCE_SIZE, deadline_ms))
        return false;
    hello_write(invitation, &introduction, hello);
    return send(fd, hello, HELLO_SIZE, MSG_NOSIGNAL) == HELLO_SIZE &&
           receive(setup, fd, welcome, HMAC_SIZE, deadline_ms) &&
           welcome_is_right(invitation, &introduction, welcome);
}

/* An abstract name, which leaves no file. Only this host's network namespace has it. */
static socklen_t to_local_name(const struct meeting_point *point, struct sockaddr_un *name)
{
    char *at = name->sun_path + 1;
    memcpy(at, LOCAL_NAME, sizeof LOCAL_NAME - 1);
    at += sizeof LOCAL_NAME - 1;
    text_hex(point->address, sizeof point->address, at);
    name->sun_family = AF_UNIX;
    return (socklen_t)(at + 2 * sizeof point->address - (char *)name);
}

static socklen_t to_name(const struct meeting_point *point, struct sockaddr_storage *name)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)name;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)name;
    memset(name, 0, sizeof *name);
    if (point->kind == POINT_LOCAL)
        return to_local_name(point, (struct sockaddr_un *)(void *)name);
    if (point->kind == POINT_IPV6) {
        six->sin6_family = AF_INET6;
        six->sin6_port = point->port;
        memcpy(&six->sin6_addr, point->address, sizeof six->sin6_addr);
        return sizeof *six;
    }
    four->sin_family = AF_INET;
    four->sin_port = point->port;
    memcpy(&four->sin_addr, point->address, sizeof four->sin_addr);
    return sizeof *four;
}

/* -1: the root is not there. */
static int connect_to(const struct channel_setup *setup, const struct invitation *invitation,
                      size_t point, int64_t deadline_ms)
{
    struct sockaddr_storage name;
    socklen_t own = to_name(&invitation->points[point], &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if ((connect(fd, (struct sockaddr *)&name, own) == 0 || errno == EINPROGRESS) &&
        ready(setup, fd, POLLOUT, deadline_ms) && fd_connect_errno(fd) == 0 &&
        introduce(setup, fd, invitation, point, deadline_ms))
        return fd;
    fd_close(&fd);
    return -1;
}

/* Tries the points in turn; a socket of this host is faster than the network. */
static int connect_to_any(const struct channel_setup *setup, const struct invitation *invitation,
                          int64_t deadline_ms)
{
    int fd = -1;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < invitation->count && fd < 0; i++) {
            int64_t until = clock_mono_ms() + CONNECT_MS;
            if ((invitation->points[i].kind == POINT_LOCAL) == (turn == 0))
                fd = connect_to(setup, invitation, i, until < deadline_ms ? until : deadline_ms);
        }
    return fd;
}

enum hvd_status member_meet(const struct channel_setup *setup, int *fd, struct error *err)
{
    struct invitation invitation = {.count = 0};
    int64_t deadline_ms = clock_mono_ms() + setup->set.timeout_ms;
    enum hvd_status status = messages_from_root(&setup->set, &invitation, sizeof invitation, err);
    if (status != HVD_OK)
        return status;
    if (invitation.count == 0 || invitation.count > POINTS_MAX) {
        error_set(err, "the root of a process set could not invite its members");
        return HVD_ERR_PEER_LOST;
    }
    while (*fd < 0 && clock_mono_ms() < deadline_ms) {
        *fd = connect_to_any(setup, &invitation, deadline_ms);
        struct pollfd stop = {.fd = setup->stop, .events = POLLIN};
        if (*fd < 0 && poll(&stop, 1, AGAIN_MS) > 0)
            return HVD_ERR_PEER_LOST;
    }
    if (*fd >= 0)
        return HVD_OK;
    error_set(err,
              "cannot connect to the root of a process set within %lld ms: if its host has several "
              "networks, name the right one in HOROVOD_GLOO_IFACE",
              (long long)setup->set.timeout_ms);
    return HVD_ERR_PEER_LOST;
}

/* ---- The root -------------------------------------------------------------------------------- */

/* Someone who has connected, and has not proved to be a member. */
struct guest {
    int fd;
    int64_t until_ms;
    struct introduction introduction;
    uint8_t hello[HELLO_SIZE];
    size_t length; /* of what has come of it */
};

struct root {
    const struct channel_setup *setup;
    struct invitation invitation;
    int listeners[POINTS_MAX]; /* one for each point */
    struct guest *guests;      /* the oldest first */
    int count, limit;
    struct pollfd *polls;
    int *fds, missing;
};

/* ---- Where it listens ------------------------------------------------------------------------ */

/* An address may have a label of its own, as eth0:1. */
static bool is_of(const char *label, const char *interface)
{
    size_t length = strlen(interface);
    return strncmp(label, interface, length) == 0 &&
           (label[length] == '\0' || label[length] == ':');
}

static bool is_usable(const struct ifaddrs *one, const char *interface)
{
    int family = one->ifa_addr == NULL ? AF_UNSPEC : one->ifa_addr->sa_family;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)one->ifa_addr;
    if ((family != AF_INET && family != AF_INET6) || (one->ifa_flags & IFF_UP) == 0)
        return false;
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
        return false; /* it means nothing on another host */
    return interface != NULL ? is_of(one->ifa_name, interface)
                             : (one->ifa_flags & IFF_LOOPBACK) == 0;
}

static void to_point(const struct sockaddr_storage *name, struct meeting_point *point)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)name;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)name;
    bool ipv6 = name->ss_family == AF_INET6;
    point->kind = ipv6 ? POINT_IPV6 : POINT_IPV4;
    point->port = ipv6 ? six->sin6_port : four->sin_port;
    if (ipv6)
        memcpy(point->address, &six->sin6_addr, sizeof six->sin6_addr);
    else
        memcpy(point->address, &four->sin_addr, sizeof four->sin_addr);
}

/* -1 and errno. */
static int open_listener(const struct sockaddr *address, socklen_t length)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (bind(fd, address, length) != 0 || listen(fd, SOMAXCONN) != 0))
        fd_close(&fd);
    return fd;
}

static void listen_at(struct root *root, const struct sockaddr *address, struct error *err)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    uint32_t number = root->invitation.count;
    int fd = open_listener(address, address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                                  : sizeof(struct sockaddr_in6));
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&name, &length) != 0) {
        error_errno(err, errno, "cannot listen for the members of a process set");
        fd_close(&fd);
        return;
    }
    to_point(&name, &root->invitation.points[number]);
    root->listeners[number] = fd;
    root->invitation.count++;
}

/* How many addresses there were, whether or not it can listen there. */
static int listen_at_all(struct root *root, const struct ifaddrs *all, const char *interface,
                         struct error *err)
{
    static const int families[] = {AF_INET, AF_INET6};
    int found = 0;
    for (int f = 0; f < 2; f++)
        for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next)
            if (root->invitation.count < POINTS_MAX && is_usable(one, interface) &&
                one->ifa_addr->sa_family == families[f]) {
                listen_at(root, one->ifa_addr, err);
                found++;
            }
    return found;
}

/* Who has named an interface wants no other one to be used. */
static void listen_to_network(struct root *root, const struct ifaddrs *all, struct error *err)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *interface = root->setup->interface;
    int found = listen_at_all(root, all, interface, err);
    if (interface != NULL && found == 0)
        error_set(err,
                  "cannot listen for the members of a process set: the network interface '%s' of "
                  "HOROVOD_GLOO_IFACE has no address here",
                  interface);
    if (interface == NULL && root->invitation.count == 0)
        listen_at(root, (const struct sockaddr *)&here, err);
}

/* For the members of this host, beside the network. Without it, they use the network, too. */
static void listen_locally(struct root *root)
{
    struct meeting_point point = {.kind = POINT_LOCAL};
    struct sockaddr_storage name;
    size_t number = root->invitation.count;
    if (number == POINTS_MAX ||
        getrandom(point.address, sizeof point.address, 0) != sizeof point.address)
        return;
    int fd = open_listener((const struct sockaddr *)&name, to_name(&point, &name));
    if (fd < 0)
        return;
    root->invitation.points[number] = point;
    root->listeners[number] = fd;
    root->invitation.count++;
}

/* -1: nowhere. */
static int open_listeners(struct root *root, struct error *err)
{
    struct ifaddrs *all = NULL;
    if (getrandom(root->invitation.secret, SECRET_SIZE, 0) != SECRET_SIZE)
        return error_errno(err, errno, "cannot get random bytes");
    if (getifaddrs(&all) != 0)
        all = NULL;
    listen_to_network(root, all, err);
    if (all != NULL)
        freeifaddrs(all);
    if (root->invitation.count == 0)
        return -1;
    listen_locally(root);
    return 0;
}

/* ---- Guests ---------------------------------------------------------------------------------- */

static void forget_first(struct root *root)
{
    fd_close(&root->guests[0].fd);
    memmove(root->guests, root->guests + 1, (size_t)--root->count * sizeof *root->guests);
}

/* -1: no descriptor or memory is left, although no guest has one. */
static int take_guest(struct root *root, size_t point, int64_t now_ms, struct error *err)
{
    struct guest guest = {.introduction.point = point, .until_ms = now_ms + GUEST_MS};
    uint8_t *nonce = guest.introduction.root_nonce;
    guest.fd = accept4(root->listeners[point], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (guest.fd < 0) {
        bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        if (exhausted && root->count == 0)
            return error_set(err, "cannot accept the members of a process set: %s%s",
                             strerror(errno),
                             errno == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
        if (exhausted)
            forget_first(root);
        return 0;
    }
    if (getrandom(nonce, NONCE_SIZE, 0) != NONCE_SIZE ||
        send(guest.fd, nonce, NONCE_SIZE, MSG_NOSIGNAL) != NONCE_SIZE) {
        fd_close(&guest.fd);
        return 0;
    }
    if (root->count == root->limit)
        forget_first(root);
    root->guests[root->count++] = guest;
    return 0;
}

/* A member waits for the welcome, so one that says more, or has closed, is none. */
static bool waits_for_welcome(int fd)
{
    char more;
    return recv(fd, &more, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* 1: a member; 0: not yet; -1: not a member. */
static int hear(const struct root *root, struct guest *guest)
{
    struct introduction *introduction = &guest->introduction;
    ssize_t got =
        recv(guest->fd, guest->hello + guest->length, HELLO_SIZE - guest->length, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (got == 0)
        return -1;
    guest->length += (size_t)got;
    if (guest->length < HELLO_SIZE)
        return 0;
    bool right =
        waits_for_welcome(guest->fd) && hello_read(&root->invitation, guest->hello, introduction);
    return right && introduction->rank >= 1 && introduction->rank < (uint32_t)root->setup->set.size
               ? 1
               : -1;
}

/* Takes the guest in, or sends it away. A member that comes again has given up its first
 * connection. */
static void decide(struct root *root, struct guest *guest)
{
    uint8_t welcome[HMAC_SIZE];
    int member = hear(root, guest);
    if (member == 0)
        return;
    if (member > 0)
        welcome_write(&root->invitation, &guest->introduction, welcome);
    if (member < 0 || send(guest->fd, welcome, HMAC_SIZE, MSG_NOSIGNAL) != HMAC_SIZE) {
        fd_close(&guest->fd);
        return;
    }
    int *place = &root->fds[guest->introduction.rank - 1];
    root->missing -= *place < 0 ? 1 : 0;
    fd_close(place);
    *place = guest->fd;
    guest->fd = -1;
}

/* Those whose time is over go, whatever they say now. */
static void hear_guests(struct root *root, const struct pollfd *polls, int64_t now_ms)
{
    int kept = 0;
    for (int i = 0; i < root->count; i++) {
        struct guest *guest = &root->guests[i];
        if (guest->until_ms <= now_ms)
            fd_close(&guest->fd);
        else if (polls[i].revents != 0)
            decide(root, guest);
        if (guest->fd >= 0)
            root->guests[kept++] = *guest;
    }
    root->count = kept;
}

static int wait_for_guests(struct root *root, int64_t limit_ms)
{
    int count = 0, points = (int)root->invitation.count;
    root->polls[count++] = (struct pollfd){.fd = root->setup->stop, .events = POLLIN};
    for (int i = 0; i < points; i++)
        root->polls[count++] = (struct pollfd){.fd = root->listeners[i], .events = POLLIN};
    for (int i = 0; i < root->count; i++)
        root->polls[count++] = (struct pollfd){.fd = root->guests[i].fd, .events = POLLIN};
    return poll(root->polls, (nfds_t)count, (int)(limit_ms < TURN_MS ? limit_ms : TURN_MS));
}

static enum hvd_status receive_members(struct root *root, int64_t deadline_ms, struct error *err)
{
    size_t points = root->invitation.count;
    while (root->missing > 0) {
        int64_t now_ms = clock_mono_ms();
        if (now_ms >= deadline_ms) {
            error_set(err, "%d of %d members of a process set did not connect within %lld ms",
                      root->missing, root->setup->set.size - 1,
                      (long long)root->setup->set.timeout_ms);
            return HVD_ERR_PEER_LOST;
        }
        int ready = wait_for_guests(root, deadline_ms - now_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0) {
            error_errno(err, errno, "cannot wait for the members of a process set");
            return HVD_ERR_ENGINE;
        }
        if (root->polls[0].revents != 0)
            return HVD_ERR_PEER_LOST;
        now_ms = clock_mono_ms();
        hear_guests(root, root->polls + 1 + points, now_ms);
        for (size_t i = 0; i < points; i++)
            if (root->polls[1 + i].revents != 0 && take_guest(root, i, now_ms, err) != 0)
                return HVD_ERR_ENGINE;
    }
    return HVD_OK;
}

static void close_all(struct root *root)
{
    for (size_t i = 0; i < root->invitation.count; i++)
        fd_close(&root->listeners[i]);
    for (int i = 0; i < root->count; i++)
        fd_close(&root->guests[i].fd);
    free(root->guests);
    free(root->polls);
}

enum hvd_status root_meet(const struct channel_setup *setup, int *fds, struct error *err)
{
    struct root root = {.setup = setup,
                        .fds = fds,
                        .missing = setup->set.size - 1,
                        .limit = setup->set.size + STRANGERS_MAX};
    int64_t deadline_ms = clock_mono_ms() + setup->set.timeout_ms;
    bool listens = open_listeners(&root, err) == 0;
    /* Perhaps to nowhere. */
    enum hvd_status status =
        messages_from_root(&setup->set, &root.invitation, sizeof root.invitation, err);
    if (status == HVD_OK && !listens)
        status = HVD_ERR_ENGINE;
    if (status == HVD_OK) {
        root.guests = mem_array((size_t)root.limit, sizeof *root.guests);
        root.polls = mem_array((size_t)root.limit + POINTS_MAX + 1, sizeof *root.polls);
        status = receive_members(&root, deadline_ms, err);
    }
    close_all(&root);
    return status;
}
