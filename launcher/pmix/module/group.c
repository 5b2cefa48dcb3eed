/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process groups. PMIx calls when all local members have asked; on one node the group is then
 * complete, and what is left for us is to remember it and to give it a number when one is wanted.
 * Groups over several nodes are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pmix/module/server.h"

struct group_request {
    struct request base;
    bool construct, wants_context;
    char *name;
    pmix_proc_t *members;
    size_t count;
    pmix_info_cbfunc_t done;
    void *done_data;
};

static void group_free(struct group *group)
{
    free(group->name);
    free(group->members);
    free(group);
}

void group_destroy_all(struct server *server)
{
    while (server->groups != NULL) {
        struct group *group = server->groups;
        server->groups = group->next;
        group_free(group);
    }
}

static struct group **find(struct server *server, const char *name)
{
    struct group **at = &server->groups;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void release_infos(void *context)
{
    struct infos *list = context;
    infos_destroy(list);
    free(list);
}

/* Takes the members and the name out of the request. */
static struct infos *construct(struct server *server, struct group_request *request)
{
    struct group *group = mem_alloc(sizeof(*group));
    *group = (struct group){.next = server->groups,
                            .name = request->name,
                            .members = request->members,
                            .count = request->count};
    request->name = NULL;
    request->members = NULL;
    server->groups = group;
    struct infos *list = mem_alloc(sizeof(*list));
    if (request->wants_context) {
        group->context = ++server->last_group_context;
        infos_add(list, PMIX_GROUP_CONTEXT_ID, &group->context, PMIX_SIZE);
    }
    pmix_data_array_t members = {.type = PMIX_PROC, .size = group->count, .array = group->members};
    infos_add(list, PMIX_GROUP_MEMBERSHIP, &members, PMIX_DATA_ARRAY);
    return list;
}

static void finish(struct group_request *request, pmix_status_t status, struct infos *list)
{
    request->done(status, list != NULL ? list->items : NULL, list != NULL ? list->count : 0,
                  request->done_data, list != NULL ? release_infos : NULL, list);
    free(request->name);
    free(request->members);
    free(request);
}

static void run(struct server *server, struct request *base)
{
    struct group_request *request = (struct group_request *)base;
    struct group **at = find(server, request->name);
    struct group *known = *at;
    if (!server_is_alone(server)) {
        finish(request, PMIX_ERR_NOT_SUPPORTED, NULL);
    } else if (request->construct) {
        if (known != NULL)
            finish(request, PMIX_ERR_EXISTS, NULL);
        else
            finish(request, PMIX_SUCCESS, construct(server, request));
    } else if (known == NULL) {
        finish(request, PMIX_ERR_NOT_FOUND, NULL);
    } else {
        *at = known->next;
        group_free(known);
        finish(request, PMIX_SUCCESS, NULL);
    }
}

static void drop(struct request *base)
{
    finish((struct group_request *)base, PMIX_ERR_UNREACH, NULL);
}

static const struct request_kind group_kind = {run, drop};

pmix_status_t up_group(pmix_group_operation_t op, char name[], const pmix_proc_t procs[],
                       size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                       pmix_info_cbfunc_t done, void *done_data)
{
    struct server *server = server_active();
    if (server == NULL || (op != PMIX_GROUP_CONSTRUCT && op != PMIX_GROUP_DESTRUCT))
        return PMIX_ERR_NOT_SUPPORTED;
    struct group_request *request = mem_alloc(sizeof(*request));
    *request = (struct group_request){
        .base = {.kind = &group_kind},
        .construct = op == PMIX_GROUP_CONSTRUCT,
        .wants_context = infos_true(directives, ndirs, PMIX_GROUP_ASSIGN_CONTEXT_ID),
        .name = mem_strdup(name),
        .members = mem_dup(procs, nprocs * sizeof(*procs)),
        .count = nprocs,
        .done = done,
        .done_data = done_data};
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}
