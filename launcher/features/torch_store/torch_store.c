/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

#define ANSWERS_MAX                                                              \
    (SIZE_MAX / 4) /* values are shared; the server reads no more when many wait \
                    */
#define QUERY_MAX (TORCH_MEMORY_MAX)
#define KEEP_ROOM ((size_t)4 << 10)  /* of a client's buffer, between two queries */
#define FREE_ROOM ((size_t)64 << 10) /* of a query; longer ones count against the limit */
#define SHARE_FROM 512
#define SMALL_ANSWER 8
#define POLL_PAUSE_MS 2000 /* a client that asks less often does not wait */

enum torch_answer { STOP_WAITING = 0, WAIT_CANCELED = 1, KEY_REGISTERED = 3 };

struct torch_client {
    struct torch_store *store;
    struct torch_client *next, *previous;
    void *owner;
    struct torch_reader reader;
    struct buf in;
    size_t charged; /* for the query that is coming */
    struct send_queue out;
    size_t answers;  /* bytes in it that are charged */
    bool unanswered; /* an answer did not fit */
    struct torch_wait wait;
    uint64_t wait_hash;    /* of the keys for which it waited last, */
    int64_t wait_since_ms; /* since then */
    char *polled; /* the counter for which it has asked last; NULL: it did something else */
    size_t polled_length;
    int64_t polled_since_ms, polled_ms;
};

struct torch_store {
    struct torch_keys keys;
    const struct torch_store_ops *ops;
    void *context;
    struct torch_client *first;
    size_t clients;
    size_t silent, old; /* connections that have sent nothing; those of the dialects A and B */
};

struct torch_store *torch_store_create(size_t memory_limit, const struct torch_store_ops *ops,
                                       void *context)
{
    struct torch_store *store = mem_alloc(sizeof(*store));
    *store = (struct torch_store){.keys = {.limit = memory_limit}, .ops = ops, .context = context};
    return store;
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
    struct torch_client *client = mem_alloc(sizeof(*client));
    *client = (struct torch_client){.store = store, .next = store->first, .owner = owner};
    buf_init(&client->in, QUERY_MAX);
    send_queue_init(&client->out, ANSWERS_MAX);
    client->wait.owner = client;
    if (store->first != NULL)
        store->first->previous = client;
    store->first = client;
    store->clients++;
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
    if (client->previous != NULL)
        client->previous->next = client->next;
    else
        store->first = client->next;
    if (client->next != NULL)
        client->next->previous = client->previous;
    store->clients--;
    stop_polling(client);
    buf_destroy(&client->in);
    send_queue_destroy(&client->out);
    free(client);
}

struct send_queue *torch_client_out(struct torch_client *client)
{
    return &client->out;
}

void torch_client_sent(struct torch_client *client)
{
    if (client->answers == 0 || send_queue_length(&client->out) > 0)
        return;
    torch_keys_release(&client->store->keys, client->answers);
    client->answers = 0;
}

/* Answers */

/* Longer answers count against the limit of memory until they are sent. */
static void say(struct torch_client *client, const void *bytes, size_t length)
{
    if (length > SMALL_ANSWER && torch_keys_charge(&client->store->keys, length) < 0) {
        client->unanswered = true;
        return;
    }
    client->answers += length > SMALL_ANSWER ? length : 0;
    memcpy(send_queue_reserve(&client->out, length), bytes, length);
    send_queue_commit(&client->out, length);
}

static void say_byte(struct torch_client *client, uint8_t byte)
{
    say(client, &byte, sizeof(byte));
}

static void say_number(struct torch_client *client, int64_t number)
{
    say(client, &number, sizeof(number));
}

static void say_bytes(struct torch_client *client, struct torch_bytes bytes)
{
    say_number(client, (int64_t)bytes.length);
    if (bytes.length > 0)
        say(client, bytes.at, bytes.length);
}

static void say_value(struct torch_client *client, struct shared_block *value)
{
    if (value == NULL || value->length < SHARE_FROM) {
        say_bytes(client, value == NULL ? (struct torch_bytes){NULL, 0}
                                        : (struct torch_bytes){value->bytes, value->length});
        return;
    }
    say_number(client, (int64_t)value->length);
    (void)send_queue_share(&client->out, value, 0, value->length);
}

static void woken(void *context, void *owner)
{
    struct torch_store *store = context;
    struct torch_client *client = owner;
    client->wait_hash = 0;
    say_byte(client, STOP_WAITING);
    store->ops->answered(store->context, client->owner);
}

/* Queries. Each takes what is behind the type of the query; -1: the client is to be dropped. */

static int full(struct error *err)
{
    return error_set(err, "the store is full (%zu MiB)", TORCH_MEMORY_MAX >> 20);
}

static int set(struct torch_store *store, struct torch_bytes key, struct torch_bytes head,
               struct torch_bytes tail, struct error *err)
{
    if (torch_keys_set(&store->keys, key, head, tail) < 0)
        return full(err);
    torch_keys_wake(&store->keys, key, false, woken, store);
    return 0;
}

static struct shared_block *value_of(const struct torch_store *store, struct torch_bytes name)
{
    const struct torch_key *key = torch_keys_find(&store->keys, name);
    return key == NULL ? NULL : key->value;
}

static int do_set(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(&at), value = torch_field_bytes(&at);
    return set(client->store, key, value, (struct torch_bytes){NULL, 0}, err);
}

static int do_append(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(&at), more = torch_field_bytes(&at);
    const struct shared_block *old = value_of(client->store, key);
    if (old == NULL)
        return set(client->store, key, more, (struct torch_bytes){NULL, 0}, err);
    if (old->length + more.length > TORCH_VALUE_MAX)
        return error_set(err, "it appended to a value until that was longer than 128 MiB");
    struct torch_bytes head = {old->bytes, old->length};
    return set(client->store, key, head, more, err);
}

static int do_multi_set(struct torch_client *client, const uint8_t *at, struct error *err)
{
    uint64_t count = torch_field_count(&at);
    int result = 0;
    for (uint64_t i = 0; i < count && result == 0; i++) {
        result = do_set(client, at, err);
        (void)torch_field_bytes(&at), (void)torch_field_bytes(&at);
    }
    return result;
}

static bool same(const struct shared_block *value, struct torch_bytes expected)
{
    return value->length == expected.length &&
           (expected.length == 0 || memcmp(value->bytes, expected.at, expected.length) == 0);
}

static int do_compare_set(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(&at), expected = torch_field_bytes(&at);
    struct torch_bytes desired = torch_field_bytes(&at);
    struct shared_block *value = value_of(client->store, key);
    bool stores = value == NULL ? expected.length == 0 : same(value, expected);
    if (stores && set(client->store, key, desired, (struct torch_bytes){NULL, 0}, err) < 0)
        return -1;
    if (stores || value == NULL)
        say_bytes(client, stores ? desired : expected);
    else
        say_value(client, value);
    return 0;
}

static int do_get(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct shared_block *value = value_of(client->store, torch_field_bytes(&at));
    if (value == NULL && client->reader.dialect != TORCH_C)
        return error_set(err, "it asked for a key that does not exist");
    say_value(client, value);
    return 0;
}

static int do_multi_get(struct torch_client *client, const uint8_t *at, struct error *err)
{
    uint64_t count = torch_field_count(&at);
    int result = 0;
    for (uint64_t i = 0; i < count && result == 0; i++) {
        result = do_get(client, at, err);
        (void)torch_field_bytes(&at);
    }
    return result;
}

/* The value of a counter. -1: it is not a number. */
static int counter_of(const struct torch_store *store, struct torch_bytes key, int64_t *out,
                      struct error *err)
{
    const struct shared_block *value = value_of(store, key);
    char text[24] = "0";
    if (value != NULL && value->length < sizeof(text)) {
        memcpy(text, value->bytes, value->length);
        text[value->length] = '\0';
    }
    bool fits = value == NULL || (value->length < sizeof(text) && value->length > 0);
    if (fits && parse_int(text, INT64_MIN, INT64_MAX, out, NULL) == 0)
        return 0;
    return error_set(err, "it added to a value that is not a number");
}

static int add(struct torch_client *client, struct torch_bytes key, int64_t amount, int64_t *sum,
               struct error *err)
{
    char text[24];
    if (counter_of(client->store, key, sum, err) < 0)
        return -1;
    if (__builtin_add_overflow(*sum, amount, sum))
        return error_set(err, "it added more than a number of 64 bits holds");
    int length = snprintf(text, sizeof(text), "%" PRId64, *sum);
    return set(client->store, key, (struct torch_bytes){(const uint8_t *)text, (size_t)length},
               (struct torch_bytes){NULL, 0}, err);
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

static int do_add(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(&at);
    int64_t sum;
    if (add(client, key, torch_field_number(&at), &sum, err) < 0)
        return -1;
    say_number(client, sum);
    return 0;
}

static int do_barrier(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(&at);
    int64_t size = torch_field_number(&at), sum;
    if (add(client, key, 1, &sum, err) < 0)
        return -1;
    if (sum < size)
        return torch_keys_join(&client->store->keys, &client->wait, key) < 0 ? full(err) : 0;
    torch_keys_part(&client->store->keys, key, woken, client->store);
    say_byte(client, STOP_WAITING);
    return 0;
}

static int do_check(struct torch_client *client, const uint8_t *at, struct error *err)
{
    uint64_t count = torch_field_count(&at);
    bool all = true;
    (void)err;
    for (uint64_t i = 0; i < count; i++)
        all &= torch_keys_has(&client->store->keys, torch_field_bytes(&at));
    say_byte(client, all ? 0 : 1);
    return 0;
}

static int do_wait(struct torch_client *client, const uint8_t *at, struct error *err)
{
    uint64_t count = torch_field_count(&at);
    if (torch_keys_wait(&client->store->keys, &client->wait, count, at) < 0)
        return full(err);
    if (client->wait.items == NULL)
        say_byte(client, STOP_WAITING);
    return 0;
}

static int do_cancel_wait(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)at, (void)err;
    say_byte(client, WAIT_CANCELED);
    return 0;
}

static int do_getnumkeys(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)at, (void)err;
    say_number(client, (int64_t)client->store->keys.values);
    return 0;
}

static int do_watch_key(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)at, (void)err;
    say_byte(client, KEY_REGISTERED);
    return 0;
}

static int do_delete_key(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)err;
    say_number(client, torch_keys_delete(&client->store->keys, torch_field_bytes(&at)));
    return 0;
}

static int do_validate(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)client, (void)at, (void)err;
    return 0;
}

static int do_ping(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)err;
    say(client, at, sizeof(uint32_t));
    return 0;
}

static int do_queue_push(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_store *store = client->store;
    struct torch_bytes key = torch_field_bytes(&at), value = torch_field_bytes(&at);
    if (torch_keys_push(&store->keys, key, value) < 0)
        return full(err);
    torch_keys_wake(&store->keys, key, true, woken, store);
    return 0;
}

static size_t queue_length(const struct torch_client *client, struct torch_bytes name)
{
    const struct torch_key *key = torch_keys_find(&client->store->keys, name);
    return key == NULL ? 0 : key->queued;
}

static int do_queue_pop(struct torch_client *client, const uint8_t *at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(&at);
    (void)err;
    say_number(client, (int64_t)queue_length(client, key));
    struct shared_block *value = torch_keys_pop(&client->store->keys, key);
    if (value != NULL)
        say_value(client, value);
    shared_block_release(value);
    return 0;
}

static int do_queue_len(struct torch_client *client, const uint8_t *at, struct error *err)
{
    (void)err;
    say_number(client, (int64_t)queue_length(client, torch_field_bytes(&at)));
    return 0;
}

static int do_list_keys(struct torch_client *client, const uint8_t *at, struct error *err)
{
    const struct torch_keys *keys = &client->store->keys;
    (void)at, (void)err;
    say_number(client, (int64_t)keys->values);
    size_t next = 0;
    const struct torch_key *key = map_next(&keys->map, &next);
    for (; key != NULL; key = map_next(&keys->map, &next)) {
        if (key->value != NULL)
            say_bytes(client, (struct torch_bytes){(const uint8_t *)key->name, key->length});
    }
    return 0;
}

static int (*const queries[TORCH_QUERIES])(struct torch_client *client, const uint8_t *at,
                                           struct error *err) = {
    [TORCH_VALIDATE] = do_validate,
    [TORCH_SET] = do_set,
    [TORCH_COMPARE_SET] = do_compare_set,
    [TORCH_GET] = do_get,
    [TORCH_ADD] = do_add,
    [TORCH_CHECK] = do_check,
    [TORCH_WAIT] = do_wait,
    [TORCH_GETNUMKEYS] = do_getnumkeys,
    [TORCH_WATCH_KEY] = do_watch_key,
    [TORCH_DELETE_KEY] = do_delete_key,
    [TORCH_APPEND] = do_append,
    [TORCH_MULTI_GET] = do_multi_get,
    [TORCH_MULTI_SET] = do_multi_set,
    [TORCH_CANCEL_WAIT] = do_cancel_wait,
    [TORCH_PING] = do_ping,
    [TORCH_QUEUE_PUSH] = do_queue_push,
    [TORCH_QUEUE_POP] = do_queue_pop,
    [TORCH_QUEUE_LEN] = do_queue_len,
    [TORCH_LIST_KEYS] = do_list_keys,
    [TORCH_BARRIER] = do_barrier,
};

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
    int result = queries[client->reader.query](client, query + 1, err);
    if (result == 0 && client->unanswered)
        result = full(err);
    if (result == 0)
        note(client, query, now_ms);
    return result;
}

/* The query will have at least so many bytes. */
static int charge(struct torch_client *client, size_t needed, struct error *err)
{
    if (needed <= FREE_ROOM || needed <= client->charged)
        return 0;
    if (torch_keys_charge(&client->store->keys, needed - client->charged) < 0)
        return full(err);
    client->charged = needed;
    return 0;
}

static void release(struct torch_client *client)
{
    torch_keys_release(&client->store->keys, client->charged);
    client->charged = 0;
    if (client->in.length == 0 && client->in.room > KEEP_ROOM)
        buf_destroy(&client->in);
}

static enum torch_progress read_on(struct torch_client *client, const uint8_t **query,
                                   const char **why)
{
    const struct torch_store *store = client->store;
    bool two = 2 * store->silent >= store->old;
    *query = (const uint8_t *)buf_text(&client->in);
    count(client, (size_t)-1);
    enum torch_progress progress =
        torch_reader_advance(&client->reader, *query, client->in.length, two, why);
    count(client, 1);
    return progress;
}

int torch_client_take(struct torch_client *client, const uint8_t *bytes, size_t length,
                      int64_t now_ms, struct error *err)
{
    if (buf_append(&client->in, bytes, length) < 0)
        return full(err);
    while (client->in.length > 0) {
        const uint8_t *query;
        const char *why = NULL;
        enum torch_progress progress = read_on(client, &query, &why);
        if (progress == TORCH_RUBBISH)
            return error_set(err, "%s", why);
        if (progress == TORCH_MORE)
            return charge(client, client->reader.needed, err);
        if (carry_out(client, query, now_ms, err) < 0)
            return -1;
        buf_consume(&client->in, client->reader.at);
        torch_reader_next(&client->reader);
        release(client);
    }
    return 0;
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
    for (const struct torch_client *client = store->first; client != NULL; client = client->next) {
        const struct torch_key *key = first_missing(&client->wait);
        struct torch_waiting waiting = {.owner = client->owner};
        if (key != NULL) {
            waiting.key = key->name;
            waiting.key_length = key->length;
            waiting.keys = client->wait.missing;
            waiting.since_ms = client->wait_since_ms;
        } else if (polls(client, now_ms)) {
            waiting.key = client->polled;
            waiting.key_length = client->polled_length;
            waiting.keys = 1;
            waiting.since_ms = client->polled_since_ms;
        } else {
            continue;
        }
        each(context, &waiting);
    }
}

size_t torch_store_clients(const struct torch_store *store)
{
    return store->clients;
}

size_t torch_store_memory(const struct torch_store *store)
{
    return store->keys.used;
}
