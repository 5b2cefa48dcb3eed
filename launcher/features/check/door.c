/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/door.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/listener.h"

#define PATIENCE_MS 5000
#define GUESTS_MAX 1024
#define READ_SIZE ((size_t)256 << 10)
#define READS_IN_A_ROW 16 /* then others get their turn */

struct guest {
    struct check_door *door;
    struct guest *next, *previous;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    uint8_t shown[CHECK_TOKEN];
    size_t shown_length;
    uint64_t count;
};

struct check_door {
    struct loop *loop;
    struct listener *listener;
    uint8_t token[CHECK_TOKEN];
    int64_t patience_ms;
    struct guest *first;
    int guests;
    uint8_t *room; /* what comes is read into; the same for all */
};

static void guest_destroy(struct guest *guest)
{
    struct check_door *door = guest->door;
    if (guest->previous != NULL)
        guest->previous->next = guest->next;
    else
        door->first = guest->next;
    if (guest->next != NULL)
        guest->next->previous = guest->previous;
    door->guests--;
    loop_timer_destroy(guest->timer);
    loop_fd_destroy(guest->watch);
    fd_close(&guest->fd);
    free(guest);
}

/* A few bytes into a socket that has sent none: either all of them fit or it is broken. */
static bool say(const struct guest *guest, const void *bytes, size_t length)
{
    return fd_send_all(guest->fd, bytes, length) == 0;
}

/* false: it is not one of us. */
static bool take_token(struct guest *guest, const uint8_t *bytes, size_t length)
{
    size_t wanted = CHECK_TOKEN - guest->shown_length;
    size_t used = length < wanted ? length : wanted;
    memcpy(guest->shown + guest->shown_length, bytes, used);
    guest->shown_length += used;
    guest->count += length - used;
    if (guest->shown_length < CHECK_TOKEN)
        return true;
    uint8_t different = 0, answer[CHECK_TOKEN];
    for (int i = 0; i < CHECK_TOKEN; i++)
        different |= (uint8_t)(guest->shown[i] ^ guest->door->token[i]);
    check_token_answer(guest->door->token, answer);
    return different == 0 && say(guest, answer, sizeof(answer));
}

/* false: it is to be shown out. */
static bool take(struct guest *guest, const uint8_t *bytes, size_t length)
{
    if (guest->shown_length < CHECK_TOKEN)
        return take_token(guest, bytes, length);
    guest->count += length;
    return true;
}

static void count_put(uint64_t count, uint8_t out[CHECK_COUNT])
{
    count = htobe64(count);
    memcpy(out, &count, sizeof(count));
}

static void say_count(const struct guest *guest)
{
    uint8_t count[CHECK_COUNT];
    count_put(guest->count, count);
    if (guest->shown_length == CHECK_TOKEN)
        (void)say(guest, count, sizeof(count));
}

static void guest_ready(void *context, int what)
{
    struct guest *guest = context;
    (void)what;
    loop_timer_set(guest->timer, guest->door->patience_ms);
    for (int i = 0; i < READS_IN_A_ROW; i++) {
        ssize_t got = fd_read(guest->fd, guest->door->room, READ_SIZE);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got == 0)
            say_count(guest);
        if (got <= 0 || !take(guest, guest->door->room, (size_t)got)) {
            guest_destroy(guest);
            return;
        }
    }
}

static void guest_waited_long(void *context)
{
    guest_destroy(context);
}

static void come(void *context, int fd)
{
    struct check_door *door = context;
    if (door->guests >= GUESTS_MAX) {
        fd_close(&fd);
        return;
    }
    struct guest *guest = mem_alloc(sizeof(*guest));
    *guest = (struct guest){.door = door, .next = door->first, .fd = fd};
    if (door->first != NULL)
        door->first->previous = guest;
    door->first = guest;
    door->guests++;
    guest->timer = loop_timer_create(door->loop, guest_waited_long, guest);
    loop_timer_set(guest->timer, door->patience_ms);
    guest->watch = loop_fd_create(door->loop, fd, guest_ready, guest);
    loop_fd_watch(guest->watch, LOOP_READ);
}

struct check_door *check_door_create(struct loop *loop, const char *address,
                                     const uint8_t token[CHECK_TOKEN], struct error *err)
{
    struct check_door *door = mem_alloc(sizeof(*door));
    *door =
        (struct check_door){.loop = loop, .patience_ms = PATIENCE_MS, .room = mem_alloc(READ_SIZE)};
    memcpy(door->token, token, CHECK_TOKEN);
    door->listener = listener_create(loop, address, come, door, err);
    if (door->listener != NULL)
        return door;
    check_door_destroy(door);
    return NULL;
}

void check_door_destroy(struct check_door *door)
{
    if (door == NULL)
        return;
    while (door->first != NULL)
        guest_destroy(door->first);
    listener_destroy(door->listener);
    free(door->room);
    free(door);
}

uint32_t check_door_port(const struct check_door *door)
{
    return listener_port(door->listener);
}

void check_door_set_patience(struct check_door *door, int64_t milliseconds)
{
    door->patience_ms = milliseconds;
}

/* The protocol */

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

uint64_t check_count_get(const uint8_t in[CHECK_COUNT])
{
    uint64_t count;
    memcpy(&count, in, sizeof(count));
    return be64toh(count);
}
