/* SPDX-License-Identifier: Apache-2.0 */
/* PMIx_Log: a worker's text for the launcher's own output. Other destinations (syslog, e-mail, a
 * data base) are not ours to write to and are refused. The library's own help texts come this way
 * too, from the namespace of the server. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

struct log_request {
    struct request base;
    int rank;
    bool library; /* no worker says it */
    struct strv lines;
    pmix_op_cbfunc_t done;
    void *done_data;
};

static void finish(struct log_request *request, pmix_status_t status)
{
    if (request->done != NULL)
        request->done(status, request->done_data);
    strv_destroy(&request->lines);
    free(request);
}

static void run(struct server *server, struct request *base)
{
    struct log_request *request = (struct log_request *)base;
    for (size_t i = 0; i < request->lines.count; i++) {
        const char *line = request->lines.items[i];
        if (request->library)
            server_complain(server, line, strlen(line));
        else
            server_log(server, LOG_NOTICE, "rank %d: %s", request->rank, line);
    }
    finish(request, request->lines.count > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED);
}

static void drop(struct request *base)
{
    finish((struct log_request *)base, PMIX_ERR_UNREACH);
}

static const struct request_kind log_kind = {run, drop};

void up_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
            const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done, void *done_data)
{
    (void)directives, (void)ndirs;
    struct server *server = server_active();
    if (server == NULL) {
        if (done != NULL)
            done(PMIX_ERR_NOT_SUPPORTED, done_data);
        return;
    }
    struct log_request *request = mem_alloc(sizeof(*request));
    *request = (struct log_request){.base = {.kind = &log_kind},
                                    .rank = (int)client->rank,
                                    .library = strcmp(client->nspace, server->nspace) == 0,
                                    .done = done,
                                    .done_data = done_data};
    for (size_t i = 0; i < ndata; i++) {
        bool ours =
            PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDERR) || PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDOUT);
        if (!ours || data[i].value.type != PMIX_STRING || data[i].value.data.string == NULL)
            continue;
        /* One log line is one line. */
        const char *text = data[i].value.data.string;
        while (*text != '\0') {
            size_t length = strcspn(text, "\n");
            strv_add_n(&request->lines, text, length);
            text += length + (text[length] == '\n' ? 1 : 0);
        }
    }
    bridge_push(&server->bridge, &request->base);
}
