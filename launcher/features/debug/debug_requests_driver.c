/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of `hvdrun debug`, `hvdrun shell` and `hvdrun continue` (debug_driver.h). */
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "driver/control/request.h"
#include "driver/job/part.h"
#include "features/debug/debug_driver.h"

const char debug_feature[] = "a debugger or a shell on a rank (debug, shell, --stop-at-start)";

#define ARGV_MAX 1024

static int seat_of(const struct job *job, const json_t *rank)
{
    for (int seat = 0; json_is_integer(rank) && seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->rank == json_integer_value(rank) && record->state == RANK_RUNNING)
            return seat;
    }
    return -1;
}

static struct node_link *node_of(const struct job *job, const char *host)
{
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (strcmp(node->host, host) == 0 && node_link_alive(node) && node->state >= NODE_UP)
            return node;
    }
    return NULL;
}

/* Which node and rank are meant. -1: none that runs. */
static int choose(const struct job *job, const struct control_asked *asked,
                  struct debug_target *out, struct error *err)
{
    const json_t *rank = json_object_get(asked->request, "rank");
    out->seat = seat_of(job, rank);
    if (out->seat >= 0) {
        out->rank = job->ranks.records[out->seat].rank;
        out->node = job->nodes[job->ranks.records[out->seat].node];
        return 0;
    }
    if (json_is_integer(rank))
        return error_set(err, "rank %lld does not run", (long long)json_integer_value(rank));
    if (rank != NULL || out->of_debugger)
        return error_set(err, "\"rank\" is missing or not a number");
    const char *host = control_host(asked, "host", err);
    out->node = host == NULL ? NULL : node_of(job, host);
    if (host != NULL && out->node == NULL)
        error_set(err, "the job has no host %s that is up", host);
    return out->node == NULL ? -1 : 0;
}

static bool is_argv(const json_t *words)
{
    size_t texts = 0;
    for (size_t i = 0; i < json_array_size(words); i++)
        texts += json_is_string(json_array_get(words, i)) ? 1 : 0;
    return words == NULL ||
           (json_is_array(words) && texts == json_array_size(words) && texts <= ARGV_MAX);
}

/* "debug" or "shell" */
static json_t *open_asked(void *context, const struct control_asked *asked, struct error *err)
{
    const char *what = json_string_value(json_object_get(asked->request, "do"));
    struct debug_target target = {.of_debugger = text_same(what, "debug")};
    if (!is_argv(json_object_get(asked->request, "argv")))
        error_set(err, "\"argv\" is not a list of %d texts at most", ARGV_MAX);
    else if (choose(context, asked, &target, err) == 0)
        (void)debug_open(context, &target, asked, err);
    return NULL; /* it comes later, or `err` */
}

static json_t *continue_asked(void *context, const struct control_asked *asked, struct error *err)
{
    struct job *job = context;
    const json_t *rank = json_object_get(asked->request, "rank");
    int seat = seat_of(job, rank);
    if (rank != NULL && seat < 0) {
        error_set(err, "no rank of that number runs");
        return NULL;
    }
    return control_accepted(debug_holds_release(job, seat, err));
}

static const struct control_rule requests[] = {
    {"debug", open_asked}, {"shell", open_asked}, {"continue", continue_asked}, {NULL}};

const struct driver_part debug_part = {.name = "debug",
                                       .open = debug_begin,
                                       .close = debug_close,
                                       .requests = requests,
                                       .ranks_changed = debug_ranks_changed,
                                       .ending = debug_ending};
