/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client inside a Horovod worker, as observed: the exact request bytes, and one connection
 * per request. 200 and 404 are success. After any other answer it tries again 500 ms later, three
 * times in all, and then calls abort(). It is stricter than the original in one way. If an answer
 * breaks the rules ("Content-Length" missing or misspelt, bytes beyond it), it aborts at once and
 * says why.
 *
 * A worker that aborts says either VIOLATION, the launcher has broken the protocol, or ABORT, which
 * a peer that died can cause too.
 */
#pragma once

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "worker.h"

enum { CLIENT_TRIES = 3, CLIENT_RETRY_MS = 500, CLIENT_HEAD_MAX = 4096 };

struct client {
    const char *host; /* as in the environment: it becomes the Host header */
    struct sockaddr_in address;
    int rank;
    long requests; /* counts tries too */
};

struct answer {
    int status; /* 0: none came */
    char *body;
    size_t length;
};

__attribute__((noreturn, format(printf, 3, 0))) static void
end_badly(const char *word, int rank, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof(text), format, args);
    dprintf(2, "%s: rank %d: %s\n", word, rank, text);
    abort();
}

__attribute__((noreturn, format(printf, 2, 3))) static void violation(int rank, const char *format,
                                                                      ...)
{
    va_list args;
    va_start(args, format);
    end_badly("VIOLATION", rank, format, args);
}

__attribute__((noreturn, format(printf, 2, 3))) static void give_up(int rank, const char *format,
                                                                    ...)
{
    va_list args;
    va_start(args, format);
    end_badly("ABORT", rank, format, args);
}

static void *allocate(size_t size)
{
    void *bytes = calloc(1, size > 0 ? size : 1);
    if (bytes == NULL)
        abort();
    return bytes;
}

static void client_init(struct client *client, int rank, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    *client = (struct client){.host = host, .rank = rank};
    if (getaddrinfo(host, port, &hints, &found) != 0)
        violation(rank, "no IPv4 address for %s:%s", host, port);
    memcpy(&client->address, found->ai_addr, sizeof(client->address));
    freeaddrinfo(found);
}

/* The number after "Content-Length: ", spelt exactly so. */
static size_t content_length(const struct client *client, const char *head)
{
    const char *line = strstr(head, "\r\nContent-Length: ");
    if (line == NULL)
        violation(client->rank, "an answer without Content-Length: %s", head);
    const char *digits = line + strlen("\r\nContent-Length: ");
    char *end = NULL;
    unsigned long long value = strtoull(digits, &end, 10);
    if (end == digits || *digits < '0' || *digits > '9' || end[0] != '\r' || end[1] != '\n')
        violation(client->rank, "a Content-Length that is no number: %s", head);
    return (size_t)value;
}

static int status_of(const struct client *client, const char *head)
{
    if (strncmp(head, "HTTP/1.0 ", 9) != 0 && strncmp(head, "HTTP/1.1 ", 9) != 0)
        violation(client->rank, "no status line: %s", head);
    long status = strtol(head + 9, NULL, 10);
    if (status < 100 || status > 599)
        violation(client->rank, "no status code: %s", head);
    return (int)status;
}

/* Reads up to the empty line. False: the connection ended before it. */
static bool read_head(int fd, char *head, size_t *got, char **body)
{
    *got = 0;
    for (;;) {
        ssize_t n = read(fd, head + *got, CLIENT_HEAD_MAX - 1 - *got);
        if (n <= 0)
            return false;
        *got += (size_t)n;
        head[*got] = '\0';
        char *end = strstr(head, "\r\n\r\n");
        if (end != NULL) {
            end[2] = '\0';
            *body = end + 4;
            return true;
        }
    }
}

static void read_answer(const struct client *client, int fd, struct answer *answer)
{
    char head[CLIENT_HEAD_MAX];
    char *start = NULL;
    size_t got = 0;
    if (!read_head(fd, head, &got, &start))
        return;
    int status = status_of(client, head);
    size_t length = content_length(client, head);
    size_t have = got - (size_t)(start - head);
    if (have > length)
        violation(client->rank, "%zu bytes after an answer of %zu", have - length, length);
    char *body = allocate(length + 1);
    memcpy(body, start, have);
    while (have < length) {
        ssize_t n = read(fd, body + have, length - have);
        if (n <= 0) {
            free(body);
            return; /* cut off: as if nothing had come */
        }
        have += (size_t)n;
    }
    *answer = (struct answer){.status = status, .body = body, .length = length};
}

static struct answer try_once(struct client *client, const char *request, size_t length)
{
    struct answer answer = {0};
    client->requests++;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        violation(client->rank, "socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&client->address, sizeof(client->address)) == 0 &&
        send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length)
        read_answer(client, fd, &answer);
    close(fd);
    return answer;
}

/* 200 or 404; the caller frees the body. */
static struct answer client_request(struct client *client, const char *method, const char *scope,
                                    const char *key, const void *body, size_t length)
{
    char head[CLIENT_HEAD_MAX];
    int head_length = snprintf(head, sizeof(head),
                               "%s /%s/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n\r\n",
                               method, scope, key, client->host, length);
    char *request = allocate((size_t)head_length + length);
    memcpy(request, head, (size_t)head_length);
    if (length > 0)
        memcpy(request + head_length, body, length);
    struct answer answer = {0};
    for (int i = 0; i < CLIENT_TRIES; i++) {
        answer = try_once(client, request, (size_t)head_length + length);
        if (answer.status == 200 || answer.status == 404) {
            free(request);
            return answer;
        }
        free(answer.body);
        pause_ms(CLIENT_RETRY_MS);
    }
    give_up(client->rank, "%s /%s/%s failed %d times, the last time with status %d", method, scope,
            key, CLIENT_TRIES, answer.status);
}
