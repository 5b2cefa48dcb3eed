/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define SHARE_FROM 512
#define SHARE_COST 64 /* of the place of a shared value in the queue; less than SHARE_FROM */

static const struct torch_bytes nothing = {NULL, 0};

/* Counts bytes that a client's next answer takes. The first ones since it has read all do not
 * count, so that a client that reads is served even when the store is full. */
static bool charge(struct torch_client *client, size_t bytes)
{
    if (client->given + bytes <= TORCH_ANSWERS_FREE) {
        client->given += bytes;
        return true;
    }
    if (torch_keys_charge(&client->store->keys, bytes) < 0)
        client->unanswered = true;
    else
        client->answers += bytes;
    return !client->unanswered;
}

static void say(struct torch_client *client, const void *bytes, size_t length)
{
    if (!charge(client, length))
        return;
    client->work += length;
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
        say_bytes(client,
                  value == NULL ? nothing : (struct torch_bytes){value->bytes, value->length});
        return;
    }
    say_number(client, (int64_t)value->length);
    if (charge(client, SHARE_COST))
        (void)send_queue_share(&client->out, value, 0, value->length);
}

int torch_full(struct error *err)
{
    return error_set(err, "the store is full (%zu MiB)", TORCH_MEMORY_MAX >> 20);
}

/* Queries */

/* Moves `*at` behind its fields. */
typedef int query(struct torch_client *client, const uint8_t **at, struct error *err);

enum torch_answer { STOP_WAITING = 0, WAIT_CANCELED = 1, KEY_REGISTERED = 3 };

void torch_woken(void *woken)
{
    struct torch_client *client = woken;
    client->wait_hash = 0; /* the end of its wait has made room for the answer */
    say_byte(client, STOP_WAITING);
    client->store->answered(client->owner);
}

static int set(struct torch_store *store, struct torch_bytes key, struct torch_bytes head,
               struct torch_bytes tail, struct error *err)
{
    if (torch_keys_set(&store->keys, key, head, tail) < 0)
        return torch_full(err);
    torch_keys_wake(&store->keys, key, TORCH_WAKE_ALL);
    return 0;
}

static struct shared_block *value_of(const struct torch_store *store, struct torch_bytes name)
{
    const struct torch_key *key = torch_keys_find(&store->keys, name);
    return key == NULL ? NULL : key->value;
}

static int do_set(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(at), value = torch_field_bytes(at);
    return set(client->store, key, value, nothing, err);
}

static int do_append(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(at), more = torch_field_bytes(at);
    const struct shared_block *old = value_of(client->store, key);
    if (old == NULL)
        return set(client->store, key, more, nothing, err);
    if (old->length + more.length > TORCH_VALUE_MAX)
        return error_set(err, "it appended to a value until that was longer than 128 MiB");
    struct torch_bytes head = {old->bytes, old->length};
    client->work += old->length;
    return set(client->store, key, head, more, err);
}

static bool same(const struct shared_block *value, struct torch_bytes expected)
{
    return value->length == expected.length &&
           (expected.length == 0 || memcmp(value->bytes, expected.at, expected.length) == 0);
}

static int do_compare_set(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(at), expected = torch_field_bytes(at);
    struct torch_bytes desired = torch_field_bytes(at);
    struct shared_block *value = value_of(client->store, key);
    bool stores = value == NULL ? expected.length == 0 : same(value, expected);
    if (stores && set(client->store, key, desired, nothing, err) < 0)
        return -1;
    if (stores || value == NULL)
        say_bytes(client, stores ? desired : expected);
    else
        say_value(client, value);
    return 0;
}

static int do_get(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct shared_block *value = value_of(client->store, torch_field_bytes(at));
    if (value == NULL && client->reader.dialect != TORCH_C)
        return error_set(err, "it asked for a key that does not exist");
    say_value(client, value);
    return 0;
}

static int do_multi(struct torch_client *client, const uint8_t **at, struct error *err)
{
    query *one = client->reader.query == TORCH_MULTI_SET ? do_set : do_get;
    uint64_t count = torch_field_count(at);
    int result = 0;
    for (uint64_t i = 0; i < count && result == 0; i++)
        result = one(client, at, err);
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
               nothing, err);
}

static int do_add(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(at);
    int64_t sum;
    if (add(client, key, torch_field_number(at), &sum, err) < 0)
        return -1;
    say_number(client, sum);
    return 0;
}

static int do_barrier(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(at);
    int64_t size = torch_field_number(at), sum;
    if (add(client, key, 1, &sum, err) < 0)
        return -1;
    if (sum < size)
        return torch_keys_join(&client->store->keys, &client->wait, key) < 0 ? torch_full(err) : 0;
    torch_keys_wake(&client->store->keys, key, TORCH_WAKE_BARRIER);
    say_byte(client, STOP_WAITING);
    return 0;
}

static int do_check(struct torch_client *client, const uint8_t **at, struct error *err)
{
    uint64_t count = torch_field_count(at);
    bool all = true;
    (void)err;
    for (uint64_t i = 0; i < count; i++)
        all &= torch_keys_has(&client->store->keys, torch_field_bytes(at));
    say_byte(client, all ? 0 : 1);
    return 0;
}

static int do_wait(struct torch_client *client, const uint8_t **at, struct error *err)
{
    uint64_t count = torch_field_count(at);
    if (torch_keys_wait(&client->store->keys, &client->wait, count, *at) < 0)
        return torch_full(err);
    if (client->wait.items == NULL)
        say_byte(client, STOP_WAITING);
    return 0;
}

static int do_agree(struct torch_client *client, const uint8_t **at, struct error *err)
{
    (void)at, (void)err;
    say_byte(client, client->reader.query == TORCH_CANCEL_WAIT ? WAIT_CANCELED : KEY_REGISTERED);
    return 0;
}

static int do_getnumkeys(struct torch_client *client, const uint8_t **at, struct error *err)
{
    (void)at, (void)err;
    say_number(client, (int64_t)client->store->keys.values);
    return 0;
}

static int do_delete_key(struct torch_client *client, const uint8_t **at, struct error *err)
{
    (void)err;
    say_number(client, torch_keys_delete(&client->store->keys, torch_field_bytes(at)));
    return 0;
}

static int do_ping(struct torch_client *client, const uint8_t **at, struct error *err)
{
    (void)err;
    say(client, *at, sizeof(uint32_t));
    return 0;
}

static int do_queue_push(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_store *store = client->store;
    struct torch_bytes key = torch_field_bytes(at), value = torch_field_bytes(at);
    if (torch_keys_push(&store->keys, key, value) < 0)
        return torch_full(err);
    torch_keys_wake(&store->keys, key, TORCH_WAKE_OLDEST);
    return 0;
}

static size_t queue_length(const struct torch_client *client, struct torch_bytes name)
{
    const struct torch_key *key = torch_keys_find(&client->store->keys, name);
    return key == NULL ? 0 : key->queued;
}

static int do_queue_pop(struct torch_client *client, const uint8_t **at, struct error *err)
{
    struct torch_bytes key = torch_field_bytes(at);
    (void)err;
    say_number(client, (int64_t)queue_length(client, key));
    struct shared_block *value = torch_keys_pop(&client->store->keys, key);
    if (value != NULL)
        say_value(client, value);
    torch_keys_let_go(&client->store->keys, value);
    return 0;
}

static int do_queue_len(struct torch_client *client, const uint8_t **at, struct error *err)
{
    (void)err;
    say_number(client, (int64_t)queue_length(client, torch_field_bytes(at)));
    return 0;
}

static int do_list_keys(struct torch_client *client, const uint8_t **at, struct error *err)
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

static query *const queries[TORCH_QUERIES] = {
    [TORCH_SET] = do_set,
    [TORCH_COMPARE_SET] = do_compare_set,
    [TORCH_GET] = do_get,
    [TORCH_ADD] = do_add,
    [TORCH_CHECK] = do_check,
    [TORCH_WAIT] = do_wait,
    [TORCH_GETNUMKEYS] = do_getnumkeys,
    [TORCH_WATCH_KEY] = do_agree,
    [TORCH_DELETE_KEY] = do_delete_key,
    [TORCH_APPEND] = do_append,
    [TORCH_MULTI_GET] = do_multi,
    [TORCH_MULTI_SET] = do_multi,
    [TORCH_CANCEL_WAIT] = do_agree,
    [TORCH_PING] = do_ping,
    [TORCH_QUEUE_PUSH] = do_queue_push,
    [TORCH_QUEUE_POP] = do_queue_pop,
    [TORCH_QUEUE_LEN] = do_queue_len,
    [TORCH_LIST_KEYS] = do_list_keys,
    [TORCH_BARRIER] = do_barrier,
};

int torch_carry_out(struct torch_client *client, const uint8_t *at, struct error *err)
{
    query *carry_out = queries[client->reader.query]; /* NULL: VALIDATE, which has no answer */
    int result = carry_out == NULL ? 0 : carry_out(client, &at, err);
    return result == 0 && client->unanswered ? torch_full(err) : result;
}
