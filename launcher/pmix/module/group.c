/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process groups. PMIx calls when all local members have asked. When those of the other nodes have
 * too, the group is complete: we remember it, give it a number when one is wanted, and give all
 * members what each has for the others.
 */
#include <arpa/inet.h>
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

/* ---- What members give each other ------------------------------------------------------------ */

/*
 * What the members of a group give each other while it is constructed: what they have put and
 * committed, and what they say of themselves (PMIX_GROUP_INFO, such as Open MPI's local ids of a
 * communicator). PMIx hands us that of the members of this node, and wants back that of all nodes.
 * In between, it is bytes: those of several nodes, one after the other, are those of all. They
 * begin with the major version of libpmix, as others have other forms.
 *
 * libpmix 4 and 5 have one blob for all local members. Later ones have an array for each member,
 * and take what was put through PMIx_server_register_resources().
 */

static bool has_key(const pmix_info_t *info, const char *key)
{
    return strncmp(info->key, key, PMIX_MAX_KEYLEN) == 0;
}

static bool is_blob(const pmix_info_t *info)
{
    return has_key(info, PMIX_GROUP_ENDPT_DATA) && info->value.type == PMIX_BYTE_OBJECT &&
           info->value.data.bo.bytes != NULL && info->value.data.bo.size > 0;
}

/* An array of a member, which begins with the member itself. */
static bool is_of_member(const pmix_info_t *info, const char *key)
{
    if (!has_key(info, key) || info->value.type != PMIX_DATA_ARRAY)
        return false;
    const pmix_data_array_t *array = info->value.data.darray;
    if (array == NULL || array->type != PMIX_INFO || array->array == NULL || array->size == 0)
        return false;
    const pmix_info_t *first = array->array;
    return has_key(first, PMIX_PROCID) && first->value.type == PMIX_PROC &&
           first->value.data.proc != NULL;
}

/* The library puts its blob behind all that members say; one before it is a member's own. */
static const pmix_info_t *blob_of(const pmix_info_t *items, size_t count)
{
    return count > 0 && is_blob(&items[count - 1]) ? &items[count - 1] : NULL;
}

static pmix_status_t pack_one(pmix_data_buffer_t *buffer, const pmix_info_t *info)
{
    return PMIx_Data_pack(NULL, buffer, (void *)(uintptr_t)info, 1, PMIX_INFO);
}

static pmix_status_t pack(pmix_data_buffer_t *buffer, const pmix_info_t *items, size_t count)
{
    const pmix_info_t *blob = blob_of(items, count);
    pmix_status_t status = blob != NULL ? pack_one(buffer, blob) : PMIX_SUCCESS;
    for (size_t i = 0; blob == NULL && i < count && status == PMIX_SUCCESS; i++)
        if (is_of_member(&items[i], PMIX_GROUP_INFO) ||
            is_of_member(&items[i], PMIX_PROC_INFO_ARRAY))
            status = pack_one(buffer, &items[i]);
    return status;
}

#define HEAD 8 /* bytes before those of a node: their format, and how many they are */

/* Of this node's members, as PMIx asks for the group. The caller frees *bytes. May run on PMIx's
 * thread. */
static pmix_status_t group_data_pack(const pmix_info_t *directives, size_t count, char **bytes,
                                     size_t *length)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t out = {0};
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = pack(&buffer, directives, count);
    if (status == PMIX_SUCCESS && buffer.bytes_used > 0)
        status = PMIx_Data_unload(&buffer, &out);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    if (status == PMIX_SUCCESS && out.size > UINT32_MAX)
        status = PMIX_ERR_OUT_OF_RESOURCE;
    if (status == PMIX_SUCCESS) {
        uint32_t head[] = {htonl((uint32_t)server_library_major()), htonl((uint32_t)out.size)};
        *length = HEAD + out.size;
        *bytes = mem_alloc(*length);
        memcpy(*bytes, head, HEAD);
        memcpy(*bytes + HEAD, out.size > 0 ? out.bytes : "", out.size);
    }
    free(out.bytes);
    return status;
}

struct joined { /* the blobs of all nodes */
    char *bytes;
    size_t length;
};

static void join(struct joined *joined, const pmix_byte_object_t *blob)
{
    joined->bytes = mem_resize(joined->bytes, joined->length + blob->size);
    memcpy(joined->bytes + joined->length, blob->bytes, blob->size);
    joined->length += blob->size;
}

static pmix_status_t take(const pmix_info_t *info, struct joined *joined, struct infos *answer,
                          struct infos *resources)
{
    if (is_blob(info))
        join(joined, &info->value.data.bo);
    else if (is_of_member(info, PMIX_GROUP_INFO))
        infos_add(answer, PMIX_GROUP_INFO, info->value.data.darray, PMIX_DATA_ARRAY);
    else if (is_of_member(info, PMIX_PROC_INFO_ARRAY))
        infos_add(resources, PMIX_GROUP_ENDPT_DATA, info->value.data.darray, PMIX_DATA_ARRAY);
    else
        return PMIX_ERR_UNPACK_FAILURE;
    return PMIX_SUCCESS;
}

/* One by one: the bytes, and no number in them, say how many there are. */
static pmix_status_t take_all(pmix_data_buffer_t *buffer, struct joined *joined,
                              struct infos *answer, struct infos *resources)
{
    pmix_status_t status = PMIX_SUCCESS;
    while (status == PMIX_SUCCESS && buffer->unpack_ptr < buffer->base_ptr + buffer->bytes_used) {
        pmix_info_t info;
        int32_t wanted = 1;
        PMIX_INFO_CONSTRUCT(&info);
        status = PMIx_Data_unpack(NULL, buffer, &info, &wanted, PMIX_INFO);
        if (status != PMIX_SUCCESS)
            return status; /* what libpmix has left in it may not be freed */
        status = take(&info, joined, answer, resources);
        PMIX_INFO_DESTRUCT(&info);
    }
    return status;
}

static pmix_status_t take_node(const char *bytes, size_t length, struct joined *joined,
                               struct infos *answer, struct infos *resources)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t blob = {.bytes = malloc(length), .size = length}; /* PMIx frees it */
    if (blob.bytes == NULL)
        return PMIX_ERR_NOMEM;
    memcpy(blob.bytes, bytes, length);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_load(&buffer, &blob);
    if (status == PMIX_SUCCESS)
        status = take_all(&buffer, joined, answer, resources);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

/* Are the bytes whole, and of one format if any node gives something? All nodes see the same here,
 * so all of them refuse. */
static pmix_status_t check(const char *bytes, size_t length)
{
    uint32_t head[2], first = 0;
    bool alike = true, some = false;
    for (size_t at = 0; at < length; at += HEAD + ntohl(head[1])) {
        if (length - at < HEAD)
            return PMIX_ERR_UNPACK_FAILURE;
        memcpy(head, bytes + at, HEAD);
        if (ntohl(head[1]) > length - at - HEAD)
            return PMIX_ERR_UNPACK_FAILURE;
        first = at == 0 ? head[0] : first;
        alike &= head[0] == first;
        some |= head[1] != 0;
    }
    return alike || !some ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED;
}

/* Adds what the answer to PMIx has of the data of all nodes to `answer`, and to `resources` what
 * PMIx takes apart from that. Reads the bytes of other nodes with suspicion: another status than
 * PMIX_SUCCESS means that they are not what group_data_pack() makes. PMIX_ERR_NOT_SUPPORTED: nodes
 * with data have different versions of libpmix. */
static pmix_status_t group_data_unpack(const char *bytes, size_t length, struct infos *answer,
                                       struct infos *resources)
{
    struct joined joined = {0};
    pmix_status_t status = check(bytes, length);
    for (size_t at = 0, size = 0; status == PMIX_SUCCESS && at < length; at += HEAD + size) {
        uint32_t head[2];
        memcpy(head, bytes + at, HEAD);
        size = ntohl(head[1]);
        if (size > 0)
            status = take_node(bytes + at + HEAD, size, &joined, answer, resources);
    }
    if (joined.length > 0) {
        pmix_byte_object_t blob = {joined.bytes, joined.length};
        infos_add(answer, PMIX_GROUP_ENDPT_DATA, &blob, PMIX_BYTE_OBJECT);
    }
    free(joined.bytes);
    return status;
}

/* ---- The groups ------------------------------------------------------------------------------ */

struct group_request {
    struct collective collective;
    bool construct, wants_context;
    char *name;
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

static bool has_members(const struct group *group, const pmix_proc_t *members, size_t count)
{
    if (group->count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (group->members[i].rank != members[i].rank ||
            strncmp(group->members[i].nspace, members[i].nspace, PMIX_MAX_NSLEN) != 0)
            return false;
    return true;
}

/* Members belong to the name of a group: if the name alone were refused, that would depend on which
 * of two groups a node knows first, and members elsewhere would wait for ever. */
static struct group **find(struct server *server, const char *name, const pmix_proc_t *members,
                           size_t count)
{
    struct group **at = &server->groups;
    while (*at != NULL && (strcmp((*at)->name, name) != 0 || !has_members(*at, members, count)))
        at = &(*at)->next;
    return at;
}

/* The one that is to end. PMIx may give no members, or others than at the beginning. */
static struct group **find_old(struct server *server, const char *name, const pmix_proc_t *members,
                               size_t count)
{
    struct group **at = find(server, name, members, count);
    if (*at != NULL)
        return at;
    at = &server->groups;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void registered(pmix_status_t status, void *context)
{
    (void)status; /* the library has said what is wrong with them */
    infos_free(context);
}

/* Takes the list. PMIx's thread takes this before the answer that follows. */
static void register_resources(struct infos *list)
{
    pmix_status_t status =
        list->count > 0 ? PMIx_server_register_resources(list->items, list->count, registered, list)
                        : PMIX_OPERATION_SUCCEEDED;
    if (status != PMIX_SUCCESS)
        infos_free(list);
}

/* Takes the members and the name out of the request, and the list. */
static void construct(struct server *server, struct group_request *request, uint64_t round,
                      struct infos *list)
{
    struct collective *collective = &request->collective;
    struct group *group = MEM_NEW((struct group){.next = server->groups,
                                                 .name = request->name,
                                                 .members = collective->procs,
                                                 .count = collective->count});
    request->name = NULL;
    collective->procs = NULL;
    server->groups = group;
    if (request->wants_context) {
        group->context = (size_t)round;
        infos_add(list, PMIX_GROUP_CONTEXT_ID, &group->context, PMIX_SIZE);
    }
    pmix_data_array_t members = {.type = PMIX_PROC, .size = group->count, .array = group->members};
    infos_add(list, PMIX_GROUP_MEMBERSHIP, &members, PMIX_DATA_ARRAY);
}

static void request_free(struct group_request *request)
{
    collective_clear(&request->collective);
    free(request->name);
    free(request);
}

static void answer(struct group_request *request, pmix_status_t status, struct infos *list)
{
    request->done(status, list != NULL ? list->items : NULL, list != NULL ? list->count : 0,
                  request->done_data, list != NULL ? infos_free : NULL, list);
    request_free(request);
}

static void forget(struct server *server, const struct group_request *request)
{
    struct group **at =
        find_old(server, request->name, request->collective.procs, request->collective.count);
    struct group *known = *at;
    if (known != NULL) {
        *at = known->next;
        group_free(known);
    }
}

/* All members have entered: the data of all of them is here. */
static void complete(struct server *server, struct group_request *request, uint64_t round,
                     const char *bytes, size_t length)
{
    struct infos *list = mem_alloc(sizeof(*list));
    struct infos *resources = mem_alloc(sizeof(*resources));
    pmix_status_t status = group_data_unpack(bytes, length, list, resources);
    if (status != PMIX_SUCCESS) {
        server_log(server, LOG_WARNING, "cannot read what members of the PMIx group %s give: %s",
                   request->name,
                   status == PMIX_ERR_NOT_SUPPORTED
                       ? "their hosts have different versions of libpmix"
                       : PMIx_Error_string(status));
        infos_free(list);
        infos_free(resources);
        answer(request, status, NULL);
        return;
    }
    construct(server, request, round, list);
    register_resources(resources);
    answer(request, PMIX_SUCCESS, list);
}

static void finish(struct collective *collective, pmix_status_t status, uint64_t round, char *bytes,
                   size_t length)
{
    char *data AUTO_FREE = bytes;
    struct group_request *request = (struct group_request *)collective;
    struct server *server = server_active();
    if (status != PMIX_SUCCESS || server == NULL) {
        answer(request, status, NULL);
        return;
    }
    if (request->construct) {
        complete(server, request, round, data, length);
        return;
    }
    forget(server, request);
    answer(request, PMIX_SUCCESS, NULL);
}

/* A group is known on all of its nodes or on none, so this says the same on each of them. PMIx
 * makes some groups without asking, and then asks for their end. */
static void run(struct server *server, struct request *base)
{
    struct group_request *request = (struct group_request *)base;
    const pmix_proc_t *procs = request->collective.procs;
    size_t count = request->collective.count;
    const struct group *known = request->construct ? *find(server, request->name, procs, count)
                                                   : *find_old(server, request->name, procs, count);
    if (request->construct && known != NULL) {
        answer(request, PMIX_ERR_EXISTS, NULL);
        return;
    }
    if (known == NULL && count == 0) {
        answer(request, PMIX_ERR_NOT_FOUND, NULL);
        return;
    }
    if (known != NULL) {
        procs = known->members;
        count = known->count;
    }
    char *operation AUTO_FREE =
        mem_printf("%s %s", request->construct ? "construct" : "destruct", request->name);
    struct collective given = request->collective;
    collective_init(&request->collective, operation, procs, count, given.bytes, given.length);
    collective_clear(&given);
    collective_begin(server, &request->collective);
}

static void drop(struct request *base)
{
    answer((struct group_request *)base, PMIX_ERR_UNREACH, NULL);
}

static const struct request_kind group_kind = {run, drop};

static void run_forget(struct server *server, struct request *base)
{
    struct group_request *request = (struct group_request *)base;
    forget(server, request);
    request_free(request);
}

static void drop_forget(struct request *base)
{
    request_free((struct group_request *)base);
}

static const struct request_kind forget_kind = {run_forget, drop_forget};

pmix_status_t up_group(pmix_group_operation_t op, char name[], const pmix_proc_t procs[],
                       size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                       pmix_info_cbfunc_t done, void *done_data)
{
    struct server *server = server_active();
    if (server == NULL || (op != PMIX_GROUP_CONSTRUCT && op != PMIX_GROUP_DESTRUCT))
        return PMIX_ERR_NOT_SUPPORTED;
    struct group_request *request = mem_alloc(sizeof(*request));
    /* Done for the members, who are all here. It has to be said at once: libpmix 5.0 asks a second
     * time about such a group when it is to wait, and takes the second answer for one to memory
     * that the first has freed. */
    if (op == PMIX_GROUP_DESTRUCT && infos_true(directives, ndirs, PMIX_GROUP_LOCAL_ONLY)) {
        *request = (struct group_request){.collective = {.base = {.kind = &forget_kind}},
                                          .name = mem_strdup(name)};
        collective_init(&request->collective, name, procs, nprocs, NULL, 0);
        bridge_push(&server->bridge, &request->collective.base);
        return PMIX_OPERATION_SUCCEEDED;
    }
    char *bytes AUTO_FREE = NULL;
    size_t length = 0;
    pmix_status_t status = op == PMIX_GROUP_CONSTRUCT
                               ? group_data_pack(directives, ndirs, &bytes, &length)
                               : PMIX_SUCCESS;
    if (status != PMIX_SUCCESS) {
        free(request);
        return status;
    }
    *request = (struct group_request){
        .collective = {.base = {.kind = &group_kind}, .finish = finish},
        .construct = op == PMIX_GROUP_CONSTRUCT,
        .wants_context = infos_true(directives, ndirs, PMIX_GROUP_ASSIGN_CONTEXT_ID),
        .name = mem_strdup(name),
        .done = done,
        .done_data = done_data};
    collective_init(&request->collective, name, procs, nprocs, bytes, length);
    bridge_push(&server->bridge, &request->collective.base);
    return PMIX_SUCCESS;
}
