/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/mpi/mpi.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pmix/publish_store.h"

/* MpiStore.kind */
enum { NAMES_PUBLISH, NAMES_LOOKUP, NAMES_UNPUBLISH, NAMES_RANK_ENDED };

struct mpi_names {
    struct job *job;
    struct publish_store *store;
    struct loop_timer *expiry;
    struct strv nspaces; /* of all that asked: those of the job's epochs, and PMI-1's */
    bool closing;        /* no more answers */
};

/* The rank that asked. */
struct name_asker {
    struct mpi_names *names;
    int node;
    uint32_t epoch;
    uint64_t token;
    uint32_t kind;
    bool pmi1;
};

static void reply(const struct name_asker *asker, enum store_status status,
                  const struct store_item *items, size_t count)
{
    struct job *job = asker->names->job;
    Hvdrun__MpiItem *copies AUTO_FREE = mem_array(count + 1, sizeof(*copies));
    Hvdrun__MpiItem **pointers AUTO_FREE = mem_array(count + 1, sizeof(Hvdrun__MpiItem *));
    for (size_t i = 0; i < count; i++) {
        copies[i] = (Hvdrun__MpiItem)HVDRUN__MPI_ITEM__INIT;
        copies[i].key = (char *)items[i].key; /* protobuf-c only reads it */
        copies[i].value.data = (uint8_t *)items[i].bytes;
        copies[i].value.len = items[i].length;
        copies[i].nspace = (char *)items[i].owner.nspace;
        copies[i].rank = items[i].owner.rank;
        pointers[i] = &copies[i];
    }
    Hvdrun__MpiStoreReply message = HVDRUN__MPI_STORE_REPLY__INIT;
    message.token = asker->token;
    message.status = (uint32_t)status;
    message.items = pointers;
    message.n_items = count;
    message.pmi1 = asker->pmi1;
    message.kind = asker->kind;
    node_link_send(job->places[asker->node], FRAME_MPI_STORE_REPLY, asker->epoch, &message.base);
}

/* A store_answer_fn. */
static void found(void *context, enum store_status status, const struct store_item *items,
                  size_t count)
{
    struct name_asker *asker = context;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += items[i].length;
    bool fits = bytes <= FRAME_MPI_DATA_MAX;
    if (!asker->names->closing)
        reply(asker, fits ? status : STORE_FULL, items, fits ? count : 0);
    free(asker);
}

static void set_expiry(struct mpi_names *names)
{
    int64_t deadline = publish_store_deadline(names->store);
    int64_t now = clock_mono_ms();
    if (deadline < 0)
        loop_timer_clear(names->expiry);
    else
        loop_timer_set(names->expiry, deadline > now ? deadline - now : 0);
}

static void expire(void *context)
{
    struct mpi_names *names = context;
    publish_store_expire(names->store, clock_mono_ms());
    set_expiry(names);
}

struct mpi_names *mpi_names_create(struct job *job)
{
    struct mpi_names *names = mem_alloc(sizeof(*names));
    names->job = job;
    names->store = publish_store_create();
    names->expiry = loop_timer_create(job->loop, expire, names);
    return names;
}

void mpi_names_destroy(struct mpi_names *names)
{
    if (names == NULL)
        return;
    names->closing = true;
    loop_timer_destroy(names->expiry);
    publish_store_destroy(names->store);
    strv_destroy(&names->nspaces);
    free(names);
}

static enum store_status publish(struct mpi_names *names, const Hvdrun__MpiStore *message,
                                 const struct store_owner *owner)
{
    struct store_item *items AUTO_FREE = mem_array(message->n_items + 1, sizeof(*items));
    for (size_t i = 0; i < message->n_items; i++)
        items[i] = (struct store_item){.key = message->items[i]->key,
                                       .bytes = message->items[i]->value.data,
                                       .length = message->items[i]->value.len};
    return publish_store_publish(names->store, owner, (enum store_range)message->range,
                                 (enum store_keep)message->keep, items, message->n_items);
}

static void remember_nspace(struct mpi_names *names, const char *nspace)
{
    if (!strv_has(&names->nspaces, nspace))
        strv_add(&names->nspaces, nspace);
}

static void look_up(struct mpi_names *names, const Hvdrun__MpiStore *message,
                    const struct store_owner *owner, const struct name_asker *asker,
                    char *const *keys)
{
    int64_t deadline =
        message->timeout_s > 0 ? clock_mono_ms() + (int64_t)message->timeout_s * 1000 : -1;
    publish_store_lookup(names->store, owner, (enum store_range)message->range, keys,
                         message->wait_for, deadline, found, mem_dup(asker, sizeof(*asker)));
}

int mpi_names_request(struct mpi_names *names, const struct node_link *node, uint32_t epoch,
                      Hvdrun__MpiStore *message)
{
    if (message->range > STORE_RM || message->keep > STORE_KEEP_SESSION)
        return -1;
    struct name_asker asker = {names,          node->place,   epoch,
                               message->token, message->kind, message->pmi1};
    struct store_owner owner = {message->nspace, message->rank, node->place};
    AUTO_STRV struct strv keys = STRV_INIT;
    for (size_t i = 0; i < message->n_keys; i++)
        strv_add(&keys, message->keys[i]);
    remember_nspace(names, message->nspace);
    size_t before = publish_store_count(names->store);
    int result = 0;
    switch (message->kind) {
    case NAMES_PUBLISH: reply(&asker, publish(names, message, &owner), NULL, 0); break;
    case NAMES_LOOKUP: look_up(names, message, &owner, &asker, strv_items(&keys)); break;
    case NAMES_UNPUBLISH:
        publish_store_unpublish(names->store, &owner, (enum store_range)message->range,
                                message->all_keys ? NULL : strv_items(&keys));
        /* PMI-1 wants to know whether there was something. */
        reply(&asker,
              publish_store_count(names->store) < before || !message->pmi1 ? STORE_OK
                                                                           : STORE_NOT_FOUND,
              NULL, 0);
        break;
    case NAMES_RANK_ENDED:
        publish_store_end_proc(names->store, message->nspace, message->rank);
        break;
    default: result = -1; break;
    }
    set_expiry(names);
    return result;
}

void mpi_names_node_lost(struct mpi_names *names, int node)
{
    const struct plan_node *lost = &names->job->plan->nodes[node];
    for (size_t i = 0; i < names->nspaces.count; i++) {
        for (int local = 0; local < lost->local_size; local++)
            publish_store_end_proc(names->store, names->nspaces.items[i],
                                   (uint32_t)lost->ranks[local]);
    }
    set_expiry(names);
}
