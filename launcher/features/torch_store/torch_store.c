/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Values are shared, and the server reads no more from a client with many answers. */
#define ANSWERS_MAX (SIZE_MAX / 4)
#define QUERY_MAX (TORCH_MEMORY_MAX)
#define KEEP_ROOM ((size_t)4 << 10)  /* of a client's buffer, between two queries */
#define FREE_ROOM ((size_t)64 << 10) /* of it that does not count against the limit */
#define TURN_WORK ((size_t)1 << 20)  /* bytes that are copied for a client; then others go on */
#define POLL_PAUSE_MS 2000           /* a client that asks less often does not wait */

struct torch_store *torch_store_create(size_t memory_limit, void (*answered)(void *owner))
{
    return MEM_NEW((struct torch_store){.keys = {.limit = memory_limit, .woken = torch_woken},
                                        .answered = answered});
}

void torch_store_destroy(struct torch_store *store)
{
    if (store == NULL)
        return;
    torch_keys_destroy(&store->keys);
    free(store);
}

struct torch_client *torch_store_join(struct torch_store *store, void *owner)
{
    struct torch_client *client = MEM_NEW((struct torch_client){.store = store, .owner = owner});
    buf_init(&client->in, QUERY_MAX);
    send_queue_init(&client->out, ANSWERS_MAX);
    client->wait.owner = client;
    LIST_INSERT_HEAD(&store->all, client, others);
    store->silent++;
    return client;
}

/* What it counts as: silent, or a client of the old dialects. */
static void count(const struct torch_client *client, size_t change)
{
    if (client->reader.dialect == TORCH_UNKNOWN)
        client->store->silent += change;
    else if (client->reader.dialect != TORCH_C)
        client->store->old += change;
}

static void stop_polling(struct torch_client *client)
{
    mem_free_at(&client->polled);
}

void torch_store_leave(struct torch_client *client)
{
    struct torch_store *store = client->store;
    torch_keys_cancel(&store->keys, &client->wait);
    torch_keys_release(&store->keys, client->charged + client->answers);
    count(client, (size_t)-1);
    LIST_REMOVE(client, others);
    stop_polling(client);
    buf_destroy(&client->in);
    send_queue_destroy(&client->out);
    free(client);
}

void torch_client_sent(struct torch_client *client)
{
    size_t left = send_queue_length(&client->out);
    client->given = left == 0 ? 0 : client->given;
    if (left == 0 && client->out.own.room > KEEP_ROOM) {
        send_queue_destroy(&client->out);
        send_queue_init(&client->out, ANSWERS_MAX);
    }
    if (client->answers <= left)
        return;
    torch_keys_release(&client->store->keys, client->answers - left);
    client->answers = left;
}

/* It asks for a counter: if it asked for the same one shortly before, it waits. */
static void note_poll(struct torch_client *client, struct torch_bytes key, int64_t now_ms)
{
    bool again = client->polled != NULL && client->polled_length == key.length &&
                 memcmp(client->polled, key.at, key.length) == 0 &&
                 now_ms - client->polled_ms < POLL_PAUSE_MS;
    client->polled_ms = now_ms;
    if (again)
        return;
    stop_polling(client);
    client->polled = mem_strndup((const char *)key.at, key.length);
    client->polled_length = strlen(client->polled);
    client->polled_since_ms = now_ms;
}

/* It goes on with what it waited for: a WAIT after a time-out, or a look at a counter. */
static bool goes_on(const struct torch_client *client, const uint8_t *query)
{
    const uint8_t *at = query + 1;
    if (client->reader.query != TORCH_ADD)
        return client->reader.query == TORCH_CANCEL_WAIT || client->reader.query == TORCH_WAIT;
    (void)torch_field_bytes(&at);
    return torch_field_number(&at) == 0;
}

/* Since when it waits. A client that repeats its WAIT after a time-out has waited all the time. */
static void note(struct torch_client *client, const uint8_t *query, int64_t now_ms)
{
    const uint8_t *at = query + 1;
    if (!goes_on(client, query)) {
        stop_polling(client);
        client->wait_hash = 0;
    } else if (client->reader.query == TORCH_ADD) {
        note_poll(client, torch_field_bytes(&at), now_ms);
    }
    if (client->wait.items == NULL)
        return;
    uint64_t hash = hash_of_bytes(query, client->reader.at) | 1;
    if (hash != client->wait_hash)
        client->wait_since_ms = now_ms;
    client->wait_hash = hash;
}

static int carry_out(struct torch_client *client, const uint8_t *query, int64_t now_ms,
                     struct error *err)
{
    torch_keys_cancel(&client->store->keys, &client->wait);
    if (torch_carry_out(client, query + 1, err) < 0)
        return -1;
    note(client, query, now_ms);
    return 0;
}

/* Its buffer counts as far as it is long. */
static int charge(struct torch_client *client, struct error *err)
{
    size_t now = client->in.room > FREE_ROOM ? client->in.room : 0;
    torch_keys_release(&client->store->keys, client->charged);
    client->charged = 0;
    if (torch_keys_charge(&client->store->keys, now) < 0)
        return torch_full(err);
    client->charged = now;
    return 0;
}

/* Of a long query that is done, the buffer keeps only what has come behind it. */
static void shrink(struct torch_client *client)
{
    struct buf rest = BUF_INIT(QUERY_MAX);
    if (client->in.room <= KEEP_ROOM || client->in.length > client->in.room / 8)
        return;
    (void)buf_append(&rest, buf_text(&client->in), client->in.length);
    buf_destroy(&client->in);
    client->in = rest;
}

static enum torch_progress read_on(struct torch_client *client, const uint8_t **query)
{
    const struct torch_store *store = client->store;
    bool two = 2 * store->silent >= store->old;
    *query = (const uint8_t *)buf_text(&client->in);
    count(client, (size_t)-1);
    enum torch_progress progress =
        torch_reader_advance(&client->reader, *query, client->in.length, two);
    count(client, 1);
    return progress;
}

int torch_client_take(struct torch_client *client, const uint8_t *bytes, size_t length,
                      int64_t now_ms, struct error *err)
{
    if (buf_append(&client->in, bytes, length) < 0)
        return torch_full(err);
    client->work = 0;
    client->has_more = false;
    while (client->in.length > 0) {
        const uint8_t *query;
        client->has_more =
            client->work >= TURN_WORK || send_queue_length(&client->out) >= TORCH_UNREAD_MAX;
        if (client->has_more)
            break;
        enum torch_progress progress = read_on(client, &query);
        if (progress == TORCH_RUBBISH)
            return error_set(err, "%s", client->reader.why);
        if (progress == TORCH_MORE)
            break;
        if (carry_out(client, query, now_ms, err) < 0)
            return -1;
        buf_consume(&client->in, client->reader.at);
        torch_reader_next(&client->reader);
    }
    shrink(client);
    return charge(client, err);
}

/* Who waits */

static bool polls(const struct torch_client *client, int64_t now_ms)
{
    return client->polled != NULL && client->polled_ms > client->polled_since_ms &&
           now_ms - client->polled_ms < POLL_PAUSE_MS;
}

static const struct torch_key *first_missing(const struct torch_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (wait->items[i].key != NULL)
            return wait->items[i].key;
    }
    return NULL;
}

void torch_store_each_waiting(const struct torch_store *store, int64_t now_ms,
                              void (*each)(void *context, const struct torch_waiting *waiting),
                              void *context)
{
    const struct torch_client *client;
    LIST_FOREACH (client, &store->all, others) {
        const struct torch_key *key = first_missing(&client->wait);
        struct torch_waiting waiting = {.owner = client->owner};
        if (key != NULL) {
            waiting.key = key->name;
            waiting.key_length = key->length;
            waiting.keys = client->wait.missing;
            waiting.waited_ms = now_ms - client->wait_since_ms;
        } else if (polls(client, now_ms)) {
            waiting.key = client->polled;
            waiting.key_length = client->polled_length;
            waiting.keys = 1;
            waiting.waited_ms = now_ms - client->polled_since_ms;
        } else {
            continue;
        }
        each(context, &waiting);
    }
}
