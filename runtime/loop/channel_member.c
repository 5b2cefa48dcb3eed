/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/channel_member.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "loop/channel_invitation.h"

enum { CONNECT_MS = 3000, AGAIN_MS = 100, TURN_MS = 1000 };

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
    struct introduction introduction = {.point = point, .rank = (uint32_t)setup->rank};
    uint8_t hello[HELLO_SIZE], welcome[HMAC_SIZE];
    if (getrandom(introduction.member_nonce, NONCE_SIZE, 0) != NONCE_SIZE ||
        !receive(setup, fd, introduction.root_nonce, NONCE_SIZE, deadline_ms))
        return false;
    hello_write(invitation, &introduction, hello);
    return send(fd, hello, HELLO_SIZE, MSG_NOSIGNAL) == HELLO_SIZE &&
           receive(setup, fd, welcome, HMAC_SIZE, deadline_ms) &&
           welcome_is_right(invitation, &introduction, welcome);
}

static socklen_t to_name(const struct meeting_point *point, struct sockaddr_storage *name)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)name;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)name;
    memset(name, 0, sizeof *name);
    if (point->ipv6) {
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
    int failed = 0;
    socklen_t length = sizeof failed, own = to_name(&invitation->points[point], &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if ((connect(fd, (struct sockaddr *)&name, own) == 0 || errno == EINPROGRESS) &&
        ready(setup, fd, POLLOUT, deadline_ms) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length) == 0 && failed == 0 &&
        introduce(setup, fd, invitation, point, deadline_ms))
        return fd;
    fd_close(&fd);
    return -1;
}

enum hvd_status member_meet(const struct channel_setup *setup, int *fd, struct error *err)
{
    struct invitation invitation = {.count = 0};
    AUTO_BUF struct buf message = BUF_INIT(1 << 16);
    int64_t deadline_ms = clock_mono_ms() + setup->timeout_ms;
    enum hvd_status status =
        setup->engine->broadcast_message(setup->comm, &message, setup->timeout_ms, err);
    if (status != HVD_OK)
        return status;
    if (invitation_read(&message, &invitation) != 0) {
        error_set(err, "the root of a process set could not invite its members");
        return HVD_ERR_PEER_LOST;
    }
    while (*fd < 0 && clock_mono_ms() < deadline_ms) {
        for (size_t i = 0; i < invitation.count && *fd < 0; i++) {
            int64_t until = clock_mono_ms() + CONNECT_MS;
            *fd = connect_to(setup, &invitation, i, until < deadline_ms ? until : deadline_ms);
        }
        struct pollfd stop = {.fd = setup->stop, .events = POLLIN};
        if (*fd < 0 && poll(&stop, 1, AGAIN_MS) > 0)
            return HVD_ERR_PEER_LOST;
    }
    if (*fd >= 0)
        return HVD_OK;
    error_set(err,
              "cannot connect to the root of a process set within %lld ms: if its host has several "
              "networks, name the right one in HOROVOD_GLOO_IFACE",
              (long long)setup->timeout_ms);
    return HVD_ERR_PEER_LOST;
}
