/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/metrics_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/usage/metrics.h"
#include "driver/usage/sampler.h"
#include "io/http_server.h"

#define PLAIN_TYPE "text/plain; charset=utf-8"

/* A request that waits for the agents. */
struct scrape {
    struct metrics_server *server;
    struct http_request *request;
    enum exposition_format format;
    struct sampler_waiter waiter;
    struct scrape *next;
};

struct metrics_server {
    struct job *job;
    struct http_server *http;
    char *url;
    struct scrape *scrapes;
};

static void answer(const struct metrics_server *server, struct http_request *request,
                   enum exposition_format format)
{
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    bool is_open = format == EXPOSITION_OPENMETRICS;
    metrics_text(server->job, format, &text);
    http_request_answer(request, 200, is_open ? EXPOSITION_OPENMETRICS_TYPE : EXPOSITION_TEXT_TYPE,
                        buf_text(&text), text.length);
}

static void scrape_done(void *context)
{
    struct scrape *scrape = context;
    struct scrape **at = &scrape->server->scrapes;
    while (*at != scrape)
        at = &(*at)->next;
    *at = scrape->next;
    answer(scrape->server, scrape->request, scrape->format);
    free(scrape);
}

static void scrape_begin(struct metrics_server *server, struct http_request *request,
                         enum exposition_format format)
{
    struct scrape *scrape = mem_alloc(sizeof(*scrape));
    *scrape = (struct scrape){.server = server,
                              .request = request,
                              .format = format,
                              .waiter = {.done = scrape_done, .context = scrape},
                              .next = server->scrapes};
    server->scrapes = scrape;
    bool over = server->job->state >= JOB_CLOSING; /* the agents leave */
    if (over || !sampler_ask(server->job->sampler, &scrape->waiter))
        scrape_done(scrape);
}

static void asked(void *context, struct http_request *request, const char *path, const char *accept)
{
    static const char text[] = "The metrics of this job are at " METRICS_PATH ".\n";
    struct metrics_server *server = context;
    if (strcmp(path, METRICS_PATH) == 0)
        scrape_begin(server, request, exposition_format_for(accept));
    else
        http_request_answer(request, 404, PLAIN_TYPE, text, strlen(text));
}

struct metrics_server *metrics_server_create(struct job *job, const struct listen_address *address,
                                             struct error *err)
{
    static const struct http_server_ops ops = {.asked = asked};
    struct metrics_server *server = mem_alloc(sizeof(*server));
    *server = (struct metrics_server){.job = job};
    server->http = http_server_create(job->loop, address, &ops, server, err);
    if (server->http == NULL) {
        metrics_server_destroy(server);
        return NULL;
    }
    server->url = mem_printf("%s" METRICS_PATH, http_server_url(server->http));
    return server;
}

const char *metrics_server_url(const struct metrics_server *server)
{
    return server->url;
}

void metrics_server_destroy(struct metrics_server *server)
{
    if (server == NULL)
        return;
    while (server->scrapes != NULL) {
        struct scrape *scrape = server->scrapes;
        server->scrapes = scrape->next;
        sampler_forget(server->job->sampler, &scrape->waiter);
        free(scrape);
    }
    http_server_destroy(server->http);
    free(server->url);
    free(server);
}
