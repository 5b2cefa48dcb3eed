/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/ras_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "features/hang/ras.h"

/* In one write: the answers come in order, and the server closes after the last one. */
static const char question[] = "CLIENT PROTOCOL 2\nTIMEOUT 3\nSET FORMAT json\nSTATUS\n";

struct ras_client {
    struct loop *loop;
    struct loop_timer *deadline;
    struct sockaddr_storage address;
    socklen_t address_length;
    int fd;
    struct loop_fd *ready;
    bool asked;
    int tries;
    int64_t end_ms;
    struct buf text;
    void (*done)(void *context, const char *text, size_t length);
    void *context;
};

static bool set_address(struct ras_client *client, const char *host, int port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&client->address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&client->address;
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        client->address_length = sizeof(*four);
        return true;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
        return false;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    client->address_length = sizeof(*six);
    return true;
}

static bool read_address(struct ras_client *client, const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t port = 0;
    if (colon == NULL || parse_int(colon + 1, 1, 65535, &port, NULL) < 0)
        return false;
    bool brackets = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
    size_t skip = brackets ? 1 : 0;
    char *host AUTO_FREE = mem_strndup(text + skip, (size_t)(colon - text) - 2 * skip);
    return set_address(client, host, (int)port);
}

static void hang_up(struct ras_client *client)
{
    loop_fd_destroy(client->ready);
    client->ready = NULL;
    fd_close(&client->fd);
    client->asked = false;
}

static void finish(struct ras_client *client, bool answered)
{
    void (*done)(void *, const char *, size_t) = client->done;
    hang_up(client);
    loop_timer_clear(client->deadline);
    if (answered)
        done(client->context, buf_text(&client->text), client->text.length);
    else
        done(client->context, NULL, 0);
}

static void ready(void *context, int what);

static int64_t left_ms(const struct ras_client *client)
{
    int64_t left = client->end_ms - clock_mono_ms();
    return left > 0 ? left : 0;
}

static void dial(struct ras_client *client)
{
    hang_up(client);
    buf_clear(&client->text);
    client->tries++;
    client->fd = socket(client->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0)
        return;
    int result =
        connect(client->fd, (const struct sockaddr *)&client->address, client->address_length);
    if (result < 0 && errno != EINPROGRESS) {
        fd_close(&client->fd);
        return;
    }
    client->ready = loop_fd_create(client->loop, client->fd, ready, client);
    loop_fd_watch(client->ready, LOOP_WRITE);
    loop_timer_set(client->deadline,
                   left_ms(client) < RAS_FIRST_MS ? left_ms(client) : RAS_FIRST_MS);
}

static void try_again(struct ras_client *client)
{
    if (client->tries < RAS_TRIES && left_ms(client) > 0)
        dial(client);
    if (client->fd < 0)
        finish(client, false);
}

static void deadline(void *context)
{
    struct ras_client *client = context;
    bool silent = client->text.length == 0;
    hang_up(client);
    if (silent)
        try_again(client);
    else
        finish(client, false);
}

static void ask(struct ras_client *client)
{
    if (fd_connect_errno(client->fd) != 0 ||
        fd_send_all(client->fd, question, sizeof(question) - 1) < 0) {
        finish(client, false); /* nobody listens there: NCCL has not begun, or has no RAS */
        return;
    }
    client->asked = true;
    loop_fd_watch(client->ready, LOOP_READ);
}

static void take(struct ras_client *client)
{
    char bytes[16384];
    ssize_t got = fd_read(client->fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (got <= 0) {
        finish(client, got == 0 && client->text.length > 0);
        return;
    }
    if (client->text.length == 0) /* it does answer: now it has the rest of the time */
        loop_timer_set(client->deadline, left_ms(client));
    if (buf_append(&client->text, bytes, (size_t)got) < 0)
        finish(client, false);
}

static void ready(void *context, int what)
{
    struct ras_client *client = context;
    (void)what;
    if (!client->asked)
        ask(client);
    else
        take(client);
}

struct ras_client *ras_client_create(struct loop *loop, const char *address,
                                     void (*done)(void *context, const char *text, size_t length),
                                     void *context)
{
    struct ras_client *client =
        MEM_NEW((struct ras_client){.loop = loop,
                                    .fd = -1,
                                    .end_ms = clock_mono_ms() + RAS_WHOLE_MS,
                                    .done = done,
                                    .context = context});
    if (!read_address(client, address)) {
        free(client);
        return NULL;
    }
    buf_init(&client->text, RAS_JSON_MAX);
    client->deadline = loop_timer_create(loop, deadline, client);
    dial(client);
    if (client->fd < 0) /* `done` comes from the loop */
        loop_timer_set(client->deadline, 0);
    return client;
}

void ras_client_destroy(struct ras_client *client)
{
    if (client == NULL)
        return;
    hang_up(client);
    loop_timer_destroy(client->deadline);
    buf_destroy(&client->text);
    free(client);
}
