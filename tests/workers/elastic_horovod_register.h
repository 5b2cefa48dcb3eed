/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUT /worker_addresses/HOST:LOCAL_RANK as Python's urllib sends it: its headers in its order, head
 * and body apart, one try, and a proxy of the environment would be used.
 */
#pragma once

#include "elastic_horovod_notice.h"
#include "horovod_mesh.h"

static void base64(const struct pickle *pickle, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < pickle->length; i += 3) {
        uint32_t three = 0;
        for (size_t k = i; k < i + 3; k++)
            three = three << 8 | (k < pickle->length ? pickle->bytes[k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *text++ = k > pickle->length - i ? '=' : digits[three >> (18 - 6 * k) & 63];
    }
    *text = '\0';
}

/* Whether no_proxy names the host: as a whole, or as the end of its name. */
static bool is_direct(const char *host)
{
    const char *lower = getenv("no_proxy"), *list = lower != NULL ? lower : getenv("NO_PROXY");
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ", "), whole = strlen(host);
        bool dotted = length > 1 && *list == '.';
        if (length == 1 && *list == '*')
            return true;
        if (length > 0 && length <= whole && strncmp(host + whole - length, list, length) == 0 &&
            (length == whole || dotted || host[whole - length - 1] == '.'))
            return true;
        list += length + strspn(list + length, ", ");
    }
    return false;
}

static void check_proxy(const struct worker *worker)
{
    const char *lower = getenv("http_proxy"), *proxy = lower != NULL ? lower : getenv("HTTP_PROXY");
    if (proxy != NULL && *proxy != '\0' && !is_direct(worker->client.host))
        violation(worker->global.rank, "http_proxy is set, and no_proxy does not name %s",
                  worker->client.host);
}

__attribute__((noreturn)) static void registration_failed(const struct worker *worker,
                                                          const char *why)
{
    dprintf(2, "ABORT: rank %d: worker_addresses: %s\n", worker->global.rank, why);
    exit(1); /* a Python exception */
}

static void register_worker(struct worker *worker, const struct notices *notices)
{
    struct pickle pickle;
    char head[2048], body[2 * PICKLE_MAX];
    struct answer answer = {0};
    check_proxy(worker);
    notices_registration(notices, &pickle);
    base64(&pickle, body);
    int length = snprintf(head, sizeof(head),
                          "PUT /worker_addresses/%s:%d HTTP/1.1\r\n"
                          "Accept-Encoding: identity\r\n"
                          "Content-Type: application/x-www-form-urlencoded\r\n"
                          "Content-Length: %zu\r\nHost: %s:%d\r\n"
                          "User-Agent: Python-urllib/3.11\r\nConnection: close\r\n\r\n",
                          worker->hostname, worker->local.rank, strlen(body), worker->client.host,
                          ntohs(worker->client.address.sin_port));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tune(fd, worker->timeout_ms);
    if (fd < 0 ||
        connect(fd, (struct sockaddr *)&worker->client.address, sizeof(worker->client.address)) < 0)
        registration_failed(worker, strerror(errno));
    bool sent = send(fd, head, (size_t)length, MSG_NOSIGNAL) == length;
    pause_ms(2); /* two segments, even if the receiver is slow */
    sent = sent && send(fd, body, strlen(body), MSG_NOSIGNAL) == (ssize_t)strlen(body);
    if (sent)
        read_answer(&worker->client, fd, &answer);
    close(fd);
    free(answer.body);
    if (answer.status == 0)
        registration_failed(worker, "no answer");
    if (answer.status < 200 || answer.status > 299)
        violation(worker->global.rank, "worker_addresses: status %d", answer.status);
}
