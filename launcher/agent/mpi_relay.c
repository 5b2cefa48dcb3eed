/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/packing.h"

/* The namespace of PMI-1's names in the store: they have no owner, so that any rank may unpublish
 * them. */
#define PMI1_NSPACE "pmi1"

/* The numbers of MpiCollect.data and MpiModexData.data in control.proto. */
#define COLLECT_DATA 4
#define MODEX_DATA 4

/* MpiStore.kind; the first three are those of struct pmix_store_request. */
enum { STORE_RANK_ENDED = 3 };

static ProtobufCBinaryData data_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)bytes}; /* only read */
}

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text; /* protobuf-c only reads it */
}

int mpi_relay_collect(const struct post *post, uint64_t token, const char *operation,
                      const int *ranks, size_t count, const void *bytes, size_t length)
{
    bool on_demand = strcmp(operation, "fence") == 0;
    bool kept = length > FRAME_MPI_DATA_MAX;
    if (kept && !on_demand)
        return -1;
    uint32_t *numbers AUTO_FREE = mem_array(count + 1, sizeof(*numbers));
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)ranks[i];
    Hvdrun__MpiCollect message = HVDRUN__MPI_COLLECT__INIT;
    message.token = token;
    message.key = text_of(operation);
    message.ranks = numbers;
    message.n_ranks = count;
    message.on_demand = on_demand;
    message.kept = kept;
    post_pieces(post, FRAME_MPI_COLLECT, &message.base, COLLECT_DATA, bytes, kept ? 0 : length);
    return 0;
}

int mpi_relay_barrier(const struct post *post, const char *bytes, size_t length)
{
    if (length > FRAME_MPI_DATA_MAX)
        return -1;
    Hvdrun__MpiCollect message = HVDRUN__MPI_COLLECT__INIT;
    message.key = text_of("PMI-1 barrier");
    message.pmi1 = true;
    post_pieces(post, FRAME_MPI_COLLECT, &message.base, COLLECT_DATA, bytes, length);
    return 0;
}

static size_t bytes_in(const struct pmix_store_request *request)
{
    size_t bytes = 0;
    for (size_t i = 0; i < request->item_count; i++)
        bytes += request->items[i].length;
    return bytes;
}

int mpi_relay_store(const struct post *post, uint64_t token,
                    const struct pmix_store_request *request)
{
    if (bytes_in(request) > FRAME_MPI_DATA_MAX)
        return -1;
    size_t count = request->item_count;
    Hvdrun__MpiItem *items AUTO_FREE = mem_array(count + 1, sizeof(*items));
    Hvdrun__MpiItem **pointers AUTO_FREE = mem_array(count + 1, sizeof(Hvdrun__MpiItem *));
    for (size_t i = 0; i < count; i++) {
        items[i] = (Hvdrun__MpiItem)HVDRUN__MPI_ITEM__INIT;
        items[i].key = text_of(request->items[i].key);
        items[i].value = data_of(request->items[i].bytes, request->items[i].length);
        pointers[i] = &items[i];
    }
    Hvdrun__MpiStore message = HVDRUN__MPI_STORE__INIT;
    message.token = token;
    message.kind = (uint32_t)request->kind;
    message.nspace = text_of(request->owner.nspace);
    message.rank = request->owner.rank;
    message.range = (uint32_t)request->range;
    message.keep = (uint32_t)request->keep;
    message.items = pointers;
    message.n_items = count;
    message.keys = (char **)(uintptr_t)request->keys;
    while (request->keys != NULL && request->keys[message.n_keys] != NULL)
        message.n_keys++;
    message.all_keys = request->keys == NULL;
    message.wait_for = (uint32_t)request->wait_for;
    message.timeout_s = (uint32_t)request->timeout_s;
    post_message(post, FRAME_MPI_STORE, &message.base);
    return 0;
}

void mpi_relay_name(const struct post *post, int rank, enum pmi1_name_request request,
                    const char *service, const char *port)
{
    char *key = text_of(service);
    Hvdrun__MpiItem item = HVDRUN__MPI_ITEM__INIT;
    Hvdrun__MpiItem *items[] = {&item};
    Hvdrun__MpiStore message = HVDRUN__MPI_STORE__INIT;
    message.token = (uint64_t)rank;
    message.kind = request == PMI1_PUBLISH  ? STORE_ASK_PUBLISH
                   : request == PMI1_LOOKUP ? STORE_ASK_LOOKUP
                                            : STORE_ASK_UNPUBLISH;
    message.nspace = text_of(PMI1_NSPACE);
    message.range = STORE_NSPACE;
    message.keep = STORE_KEEP_FOREVER;
    message.pmi1 = true;
    if (request == PMI1_PUBLISH) {
        item.key = key;
        item.value = data_of(port, strlen(port) + 1);
        message.items = items;
        message.n_items = 1;
    } else {
        message.keys = &key;
        message.n_keys = 1;
    }
    post_message(post, FRAME_MPI_STORE, &message.base);
}

void mpi_relay_rank_ended(const struct post *post, const char *nspace, int rank)
{
    Hvdrun__MpiStore message = HVDRUN__MPI_STORE__INIT;
    message.kind = STORE_RANK_ENDED;
    message.nspace = text_of(nspace);
    message.rank = (uint32_t)rank;
    post_message(post, FRAME_MPI_STORE, &message.base);
}

void mpi_relay_modex(const struct post *post, uint64_t token, int rank)
{
    Hvdrun__MpiModex message = HVDRUN__MPI_MODEX__INIT;
    message.token = token;
    message.rank = (uint32_t)rank;
    post_message(post, FRAME_MPI_MODEX, &message.base);
}

void mpi_relay_modex_data(const struct post *post, struct pmix_asker asker, bool ok,
                          const void *bytes, size_t length)
{
    Hvdrun__MpiModexData message = HVDRUN__MPI_MODEX_DATA__INIT;
    message.token = asker.token;
    message.node = asker.node;
    message.found = ok && length <= FRAME_MPI_DATA_MAX && post_takes(post, length);
    if (ok && !message.found)
        log_warning(&post->log,
                    "an MPI rank on another host asks for data of one here, but %zu MiB is more "
                    "than %s",
                    length >> 20, length > FRAME_MPI_DATA_MAX ? "60 MiB" : "the connection takes");
    post_pieces(post, FRAME_MPI_MODEX_DATA, &message.base, MODEX_DATA, bytes,
                message.found ? length : 0);
}

void mpi_relay_event(const struct post *post, const void *bytes, size_t length)
{
    Hvdrun__MpiEvent message = HVDRUN__MPI_EVENT__INIT;
    message.data = data_of(bytes, length);
    if (length <= FRAME_MPI_DATA_MAX)
        post_message(post, FRAME_MPI_EVENT, &message.base);
    else
        log_warning(&post->log, "a PMIx event of %zu MiB is too large for the other nodes",
                    length >> 20);
}

void mpi_relay_signal(const struct post *post, int rank, int signal)
{
    Hvdrun__MpiSignal message = HVDRUN__MPI_SIGNAL__INIT;
    message.rank = rank;
    message.signal = signal;
    post_message(post, FRAME_MPI_SIGNAL, &message.base);
}

static bool was_given(const struct buf *given, const char *pair)
{
    const char *at = buf_text(given), *end = at + given->length;
    while (at < end && strcmp(at, pair) != 0)
        at += strnlen(at, (size_t)(end - at)) + 1;
    return at < end;
}

/* Returns the list, which borrows the texts; the caller frees it. */
static char **env_of(const struct pmix_spawn_app *app, const struct buf *given, size_t *count)
{
    size_t all = 0;
    while (app->env[all] != NULL)
        all++;
    char **list = mem_array(all + 1, sizeof(*list));
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (!was_given(given, app->env[i]))
            list[(*count)++] = app->env[i];
    }
    return list;
}

/* Fills in what both protocols have. */
static int post_spawn(const struct post *post, const struct pmix_spawn *request,
                      const struct buf *given, Hvdrun__Spawn *message)
{
    size_t count = request->app_count;
    Hvdrun__SpawnApp *apps AUTO_FREE = mem_array(count + 1, sizeof(*apps));
    Hvdrun__SpawnApp **pointers AUTO_FREE = mem_array(count + 1, sizeof(Hvdrun__SpawnApp *));
    for (size_t i = 0; i < count; i++) {
        const struct pmix_spawn_app *app = &request->apps[i];
        Hvdrun__SpawnApp *to = pointers[i] = &apps[i];
        *to = (Hvdrun__SpawnApp)HVDRUN__SPAWN_APP__INIT;
        to->argv = (char **)(uintptr_t)app->argv;
        while (app->argv[to->n_argv] != NULL)
            to->n_argv++;
        to->env = env_of(app, given, &to->n_env);
        to->wdir = text_of(app->wdir != NULL ? app->wdir : "");
        to->hosts = text_of(app->hosts != NULL ? app->hosts : "");
        to->np = (uint32_t)(app->np > 0 ? app->np : 0);
    }
    message->seat = (uint32_t)request->rank;
    message->apps = pointers;
    message->n_apps = count;
    bool fits = hvdrun__spawn__get_packed_size(message) <= FRAME_MPI_DATA_MAX;
    if (fits)
        post_message(post, FRAME_SPAWN, &message->base);
    for (size_t i = 0; i < count; i++)
        free(apps[i].env);
    return fits ? 0 : -1;
}

/* What all nodes have given, as it was before the driver made it smaller. `own`: the caller frees
 * it. -1: it is broken. */
static int expand(const Hvdrun__MpiCollected *message, ProtobufCBinaryData *data, void **own)
{
    *data = message->data;
    if (message->expanded == 0)
        return 0;
    *own = packing_expand(message->data.data, message->data.len, message->expanded,
                          FRAME_MPI_DATA_MAX);
    *data = data_of(*own, message->expanded);
    return *own == NULL ? -1 : 0;
}

int mpi_relay_spawn(const struct post *post, uint64_t token, const struct pmix_spawn *request,
                    const struct buf *given)
{
    Hvdrun__Spawn message = HVDRUN__SPAWN__INIT;
    message.token = token;
    return post_spawn(post, request, given, &message);
}

int mpi_relay_spawn_pmi1(const struct post *post, int rank, int number,
                         const struct pmi1_spawn *request)
{
    static char *const no_env[] = {NULL};
    static const struct buf nothing = BUF_INIT(0);
    struct pmix_spawn_app *apps AUTO_FREE = mem_array(request->app_count + 1, sizeof(*apps));
    for (size_t i = 0; i < request->app_count; i++) {
        const struct pmi1_spawn_app *app = &request->apps[i];
        apps[i] =
            (struct pmix_spawn_app){strv_items(&app->argv), no_env, app->wdir, app->hosts, app->np};
    }
    Hvdrun__Spawn message = HVDRUN__SPAWN__INIT;
    message.token = (uint64_t)rank;
    message.pmi1 = true;
    message.preput = request->preput.items;
    message.n_preput = request->preput.count;
    const struct pmix_spawn same = {number, apps, request->app_count};
    return post_spawn(post, &same, &nothing, &message);
}

static const char *on_collected(const struct mpi_world *world, const Hvdrun__MpiCollected *message)
{
    bool ok = message->problem[0] == '\0';
    struct error err = ERROR_INIT;
    ProtobufCBinaryData data = {0}; /* none, if not ok */
    void *own AUTO_FREE = NULL;
    if (!ok)
        log_debug(&world->job.post->log, "a step of MPI's start-up failed: %s", message->problem);
    if (ok && expand(message, &data, &own) < 0)
        return "MPI_COLLECTED has broken data";
    if (!message->pmi1 && world->pmix != NULL)
        world->pmix->module->collect_reply(world->pmix->inner, message->token, ok, message->round,
                                           data.data, data.len);
    /* PMI-1 has no way to say that a barrier failed; the job is being ended anyway. */
    struct pmi1_engine *pmi1 = world->pmi1 != NULL ? pmi1_wire_engine(world->pmi1) : NULL;
    if (message->pmi1 && ok && pmi1 != NULL &&
        pmi1_barrier_out(pmi1, (const char *)data.data, data.len, &err) < 0)
        log_error(&world->job.post->log, "%s", err.text);
    return NULL;
}

static void on_modex(const struct mpi_world *world, const Hvdrun__MpiModex *message)
{
    struct pmix_asker asker = {message->node, message->token};
    if (world->pmix != NULL)
        world->pmix->module->modex_request(world->pmix->inner, asker, (int)message->rank);
}

static void on_modex_data(const struct mpi_world *world, const Hvdrun__MpiModexData *message)
{
    if (world->pmix != NULL)
        world->pmix->module->modex_reply(world->pmix->inner, message->token, message->found,
                                         message->data.data, message->data.len);
}

static void name_reply(const struct mpi_world *world, const Hvdrun__MpiStoreReply *message)
{
    const char *port = message->status == STORE_OK ? "" : NULL;
    enum pmi1_name_request request = message->kind == STORE_ASK_PUBLISH  ? PMI1_PUBLISH
                                     : message->kind == STORE_ASK_LOOKUP ? PMI1_LOOKUP
                                                                         : PMI1_UNPUBLISH;
    if (request == PMI1_LOOKUP) {
        /* The value ends with the NUL that mpi_relay_name() sent. */
        const ProtobufCBinaryData *value = message->n_items == 1 ? &message->items[0]->value : NULL;
        bool whole = value != NULL && value->len > 0 && value->data[value->len - 1] == '\0';
        port = whole ? (const char *)value->data : NULL;
    }
    pmi1_name_reply(pmi1_wire_engine(world->pmi1), (int)message->token, request, port);
}

static void store_reply(const struct mpi_world *world, const Hvdrun__MpiStoreReply *message)
{
    struct store_item *items AUTO_FREE = mem_array(message->n_items + 1, sizeof(*items));
    for (size_t i = 0; i < message->n_items; i++) {
        const Hvdrun__MpiItem *item = message->items[i];
        items[i] = (struct store_item){
            {item->nspace, item->rank, 0}, item->key, item->value.data, item->value.len};
    }
    world->pmix->module->store_reply(world->pmix->inner, message->token,
                                     (enum store_status)message->status, items, message->n_items);
}

static void on_store_reply(const struct mpi_world *world, const Hvdrun__MpiStoreReply *message)
{
    if (message->pmi1 && world->pmi1 != NULL)
        name_reply(world, message);
    else if (!message->pmi1 && world->pmix != NULL)
        store_reply(world, message);
}

static void on_event(const struct mpi_world *world, const Hvdrun__MpiEvent *message)
{
    if (world->pmix != NULL)
        world->pmix->module->event(world->pmix->inner, message->data.data, message->data.len);
}

static void on_signal(const struct mpi_world *world, const Hvdrun__MpiSignal *message)
{
    int first = (int)world->job.prepare->first_seat; /* the driver knows ranks by their seats */
    int rank = message->rank < 0 ? message->rank : message->rank - first;
    world->job.ops->signal(world->job.context, rank, message->signal);
}

static void on_spawned(const struct mpi_world *world, const Hvdrun__Spawned *message)
{
    char *nspace AUTO_FREE = mem_printf(PMIX_NSPACE_FORMAT, world->job.job_id, message->epoch);
    if (message->pmi1 && world->pmi1 != NULL)
        pmi1_spawn_reply(pmi1_wire_engine(world->pmi1), (int)message->token,
                         message->result == PMIX_SPAWNED_OK);
    else if (!message->pmi1 && world->pmix != NULL && message->result <= PMIX_SPAWN_FAILED)
        world->pmix->module->spawn_reply(world->pmix->inner, message->token,
                                         (enum pmix_spawn_result)message->result, nspace);
}

const char *mpi_relay_frame(const struct mpi_world *world, uint8_t type, const void *message)
{
    if (world->pmix == NULL && world->pmi1 == NULL)
        return NULL;
    switch (type) {
    case FRAME_MPI_COLLECTED: return on_collected(world, message);
    case FRAME_MPI_MODEX: on_modex(world, message); break;
    case FRAME_MPI_MODEX_DATA: on_modex_data(world, message); break;
    case FRAME_MPI_STORE_REPLY: on_store_reply(world, message); break;
    case FRAME_MPI_EVENT: on_event(world, message); break;
    case FRAME_MPI_SIGNAL: on_signal(world, message); break;
    case FRAME_SPAWNED: on_spawned(world, message); break;
    default: break;
    }
    return NULL;
}
