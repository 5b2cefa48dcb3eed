/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "features/metrics/metrics.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/usage_driver.h"
#include "io/http_server.h"
#include "model/net/http_words.h"
#include "rendezvous/peer.h"

/*
 * Decides which user may see the status page, which shows the command and the output of the job.
 *
 * A Unix socket lets only its owner and root in. On 127.0.0.1, the gate asks the kernel for the
 * user of the connection, and lets in the user of the job and root. It refuses a page of another
 * site in this user's browser, which cannot name this server by its address. At any other address,
 * a request must have the token of the gate in its query.
 */

struct gate {
    bool is_path;
    struct rendezvous_peer *peer; /* on loopback; NULL: elsewhere */
    char token[RANDOM_TEXT_ROOM]; /* elsewhere */
};

static bool is_loopback(const struct listen_address *address)
{
    return address->at.any.sa_family == AF_INET &&
           ntohl(address->at.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* -1: there is no randomness for a token. */
static int gate_init(struct gate *gate, const struct listen_address *address, struct error *err)
{
    gate->is_path = address->is_path;
    if (gate->is_path)
        return 0;
    if (is_loopback(address))
        gate->peer = rendezvous_peer_create();
    else if (random_text(gate->token) < 0)
        return error_set(err, "the kernel has no randomness yet for the token of the status page");
    return 0;
}

static bool is_own(const struct gate *gate, const struct http_request *request)
{
    uid_t uid = 0;
    return rendezvous_peer_uid(gate->peer, http_request_socket(request), &uid) == 0 &&
           (uid == getuid() || uid == 0);
}

/* NULL: let in. Else one line that says why not. */
static const char *gate_refusal(const struct gate *gate, const struct http_request *request,
                                const struct http_question *question)
{
    struct http_word given;
    if (gate->is_path)
        return NULL;
    if (gate->peer == NULL) {
        if (http_query_find(question->query, "token", &given) &&
            http_word_is_secret(&given, gate->token))
            return NULL;
        return "the token is wrong or missing; 'hvdrun status' shows the address of the page with "
               "its token\n";
    }
    if (question->host != NULL && !http_host_is_address(question->host))
        return "this page is only served under an address, such as 127.0.0.1, or as localhost\n";
    if (!is_own(gate, request))
        return "this page is only for the user of the job and root\n";
    return NULL;
}

#define NAME_ROOM 256

/* As others reach the server: all addresses of this machine (0.0.0.0 or [::]) become its name. The
 * caller frees it. */
static char *outside_of(const char *url)
{
    static const char *const all[] = {"http://0.0.0.0:", "http://[::]:"};
    char name[NAME_ROOM] = "";
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (text_begins(url, all[i]) && gethostname(name, sizeof(name) - 1) == 0)
            return mem_printf("http://%s:%s", name, url + strlen(all[i]));
    }
    return mem_strdup(url);
}

#define PLAIN_TYPE "text/plain; charset=utf-8"
#define HTML_TYPE "text/html; charset=utf-8"
#define JSON_TYPE "application/json"
#define END_WAIT_MS (HTTP_CONNECTION_MS * 4 / 5)
#define RANKS_MOST (1 << 24)

struct waiting;
typedef void answer_later(struct metrics_server *server, const struct waiting *waiting);

/* A request that waits for the agents, or for the end of the job. */
struct waiting {
    LIST_ENTRY(waiting) others;
    struct metrics_server *server;
    struct http_request *request;
    answer_later *answer;
    enum exposition_format format;
    struct loop_timer *patience; /* of one for the end; NULL */
};

struct metrics_server {
    struct job *job;
    struct http_server *http;
    struct gate gate;
    struct metrics_urls urls;
    LIST_HEAD(, waiting) waiting;
    struct buf job_text; /* the last answer to /job.json, for all who ask at the same time */
    int64_t job_text_ms;
};

static struct waiting *waiting_create(struct metrics_server *server, struct http_request *request,
                                      answer_later *answer)
{
    struct waiting *waiting =
        MEM_NEW((struct waiting){.server = server, .request = request, .answer = answer});
    LIST_INSERT_HEAD(&server->waiting, waiting, others);
    return waiting;
}

static void waiting_destroy(struct waiting *waiting)
{
    LIST_REMOVE(waiting, others);
    ask_forget(waiting->server->job, waiting);
    loop_timer_destroy(waiting->patience);
    free(waiting);
}

static void over(void *context)
{
    struct waiting *waiting = context;
    waiting->answer(waiting->server, waiting);
    waiting_destroy(waiting);
}

/* Answers */

static void answer_text(struct http_request *request, int status, const char *text)
{
    http_request_answer(request, status, PLAIN_TYPE, text, strlen(text));
}

static void answer_json(struct http_request *request, json_t *object)
{
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    page_json_put(object, &text);
    http_request_answer(request, text.length == 0 ? 503 : 200, JSON_TYPE, buf_text(&text),
                        text.length);
}

static void answer_metrics(struct metrics_server *server, const struct waiting *waiting)
{
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    bool is_open = waiting->format == EXPOSITION_OPENMETRICS;
    metrics_text(server->job, waiting->format, &text);
    http_request_answer(waiting->request, 200,
                        is_open ? EXPOSITION_OPENMETRICS_TYPE : EXPOSITION_TEXT_TYPE,
                        buf_text(&text), text.length);
}

static void answer_job(struct metrics_server *server, const struct waiting *waiting)
{
    int64_t now = clock_mono_ms();
    if (server->job_text.length == 0 || now - server->job_text_ms >= topic_usage.fresh_ms) {
        buf_clear(&server->job_text);
        page_json_put(page_json_job(server->job, usage_json(server->job)), &server->job_text);
        server->job_text_ms = now;
    }
    http_request_answer(waiting->request, 200, JSON_TYPE, buf_text(&server->job_text),
                        server->job_text.length);
}

static void answer_not_ended(struct metrics_server *server, const struct waiting *waiting)
{
    (void)server;
    answer_json(waiting->request, json_object());
}

/* Requests */

static void answered(void *context, const struct ask *ask)
{
    (void)ask;
    over(context);
}

static void ask_agents(struct waiting *waiting)
{
    const struct job *job = waiting->server->job;
    bool leaving = job->state >= JOB_CLOSING; /* the agents */
    if (leaving || !sampler_ask(job_part(job, sampler), answered, waiting))
        over(waiting);
}

static void begin_metrics(struct metrics_server *server, struct http_request *request,
                          const struct http_question *question)
{
    struct waiting *waiting = waiting_create(server, request, answer_metrics);
    waiting->format = exposition_format_for(question->accept);
    ask_agents(waiting);
}

static void begin_page(struct metrics_server *server, struct http_request *request,
                       const struct http_question *question)
{
    struct buf document AUTO_BUF = BUF_INIT(PAGE_TEXT_MAX),
                        policy AUTO_BUF = BUF_INIT(PAGE_POLICY_MAX);
    (void)server, (void)question;
    if (page_text(&document, &policy) < 0) {
        answer_text(request, 503, "the kernel has no randomness yet\n");
        return;
    }
    http_request_header(request, "Content-Security-Policy", buf_text(&policy));
    http_request_answer(request, 200, HTML_TYPE, buf_text(&document), document.length);
}

static void begin_job(struct metrics_server *server, struct http_request *request,
                      const struct http_question *question)
{
    (void)question;
    ask_agents(waiting_create(server, request, answer_job));
}

static void answer_no_rank(struct http_request *request, int rank)
{
    char *text AUTO_FREE = mem_printf("the job has no rank %d\n", rank);
    answer_text(request, 404, text);
}

static void begin_output(struct metrics_server *server, struct http_request *request,
                         const struct http_question *question)
{
    struct http_word word;
    int rank = -1;
    if (http_query_find(question->query, "rank", &word) &&
        !http_word_number(&word, RANKS_MOST, &rank))
        answer_text(request, 400, "rank is not a number\n");
    else if (!page_json_has_output(server->job, rank))
        answer_no_rank(request, rank);
    else
        answer_json(request, page_json_output(server->job, rank));
}

static void begin_history(struct metrics_server *server, struct http_request *request,
                          const struct http_question *question)
{
    struct http_word word;
    int since = 0;
    if (http_query_find(question->query, "since", &word) &&
        !http_word_number(&word, INT_MAX, &since))
        answer_text(request, 400, "since is not a number\n");
    else
        answer_json(request, job_history_json(job_part(server->job, job_history), (uint64_t)since));
}

static int count_for_end(const struct metrics_server *server)
{
    const struct waiting *at;
    int count = 0;
    LIST_FOREACH (at, &server->waiting, others)
        count += at->patience != NULL;
    return count;
}

static void begin_end(struct metrics_server *server, struct http_request *request,
                      const struct http_question *question)
{
    (void)question;
    if (count_for_end(server) >= METRICS_SERVER_WAITS_MAX) {
        answer_text(request, 503, "too many pages wait for the end of the job\n");
        return;
    }
    struct waiting *waiting = waiting_create(server, request, answer_not_ended);
    waiting->patience = loop_timer_create(server->job->loop, over, waiting);
    loop_timer_set(waiting->patience, END_WAIT_MS);
}

static const struct page_route {
    const char *path;
    bool gated;
    void (*begin)(struct metrics_server *server, struct http_request *request,
                  const struct http_question *question);
} routes[] = {
    {METRICS_PATH, false, begin_metrics}, {"/", true, begin_page},
    {"/job.json", true, begin_job},       {"/output.json", true, begin_output},
    {"/end.json", true, begin_end},       {"/history.json", true, begin_history},
};

static void asked(void *context, struct http_request *request, const struct http_question *question)
{
    struct metrics_server *server = context;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct page_route *route = &routes[i];
        if (strcmp(question->path, route->path) != 0)
            continue;
        const char *refusal = route->gated ? gate_refusal(&server->gate, request, question) : NULL;
        if (refusal != NULL)
            answer_text(request, 403, refusal);
        else
            route->begin(server, request, question);
        return;
    }
    answer_text(request, 404,
                "the metrics of this job are at " METRICS_PATH ", and its status page is at /\n");
}

struct metrics_server *metrics_server_create(struct job *job, const struct listen_address *address,
                                             struct error *err)
{
    struct metrics_server *server =
        MEM_NEW((struct metrics_server){.job = job, .job_text = BUF_INIT(METRICS_TEXT_MAX)});
    if (gate_init(&server->gate, address, err) == 0)
        server->http = http_server_create(job->loop, address, asked, server, err);
    if (server->http == NULL) {
        metrics_server_destroy(server);
        return NULL;
    }
    const char *url = http_server_url(server->http), *token = server->gate.token;
    struct metrics_urls *urls = &server->urls;
    urls->metrics = mem_printf("%s" METRICS_PATH, url);
    urls->outside = outside_of(url);
    urls->page = mem_printf("%s/%s%s", urls->outside, token[0] == '\0' ? "" : "?token=", token);
    return server;
}

const struct metrics_urls *metrics_server_urls(const struct metrics_server *server)
{
    return &server->urls;
}

void metrics_server_finish(struct metrics_server *server)
{
    while (!LIST_EMPTY(&server->waiting)) {
        struct waiting *waiting = LIST_FIRST(&server->waiting);
        if (waiting->patience != NULL)
            answer_json(waiting->request, page_json_end(server->job));
        else
            waiting->answer(server, waiting);
        waiting_destroy(waiting);
    }
    http_server_flush(server->http);
}

void metrics_server_destroy(struct metrics_server *server)
{
    if (server == NULL)
        return;
    while (!LIST_EMPTY(&server->waiting))
        waiting_destroy(LIST_FIRST(&server->waiting));
    http_server_destroy(server->http);
    rendezvous_peer_destroy(server->gate.peer);
    buf_destroy(&server->job_text);
    free(server->urls.metrics);
    free(server->urls.outside);
    free(server->urls.page);
    free(server);
}
