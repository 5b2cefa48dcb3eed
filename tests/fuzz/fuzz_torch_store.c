/* SPDX-License-Identifier: Apache-2.0 */
/* The store of torch.distributed: a byte says which of four clients speaks (or leaves), the next
 * one how many bytes it sends. */
#include "features/torch_store/torch_store.h"
#include "fuzz.h"

#define CLIENTS 4
#define MEMORY ((size_t)4 << 20)

static void answered(void *owner)
{
    FUZZ_CHECK(owner != NULL);
}

static void waits(void *context, const struct torch_waiting *waiting)
{
    (void)context;
    FUZZ_CHECK(waiting->keys > 0 && waiting->key_length <= TORCH_KEY_MAX);
}

static void consume(struct torch_client *client)
{
    struct send_queue *out = &client->out;
    size_t length;
    while (send_queue_next(out, &length) != NULL)
        send_queue_consume(out, length);
    torch_client_sent(client);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    struct torch_store *store = torch_store_create(MEMORY, answered);
    struct torch_client *clients[CLIENTS] = {NULL};
    int64_t now_ms = 0;
    while (bytes.left > 0) {
        uint8_t who = fuzz_u8(&bytes), given = fuzz_u8(&bytes);
        struct torch_client **client = &clients[who % CLIENTS];
        size_t length = given < bytes.left ? given : bytes.left;
        struct error err = ERROR_INIT;
        if (*client == NULL)
            *client = torch_store_join(store, client);
        int result = torch_client_take(*client, bytes.at, length, ++now_ms, &err);
        fuzz_check_error(result, &err);
        if (result < 0 || who >= 0xf0)
            torch_store_leave(*client), *client = NULL;
        else if (who % 8 >= 4)
            consume(*client);
        FUZZ_CHECK(torch_keys_used(&store->keys) <= MEMORY);
        torch_store_each_waiting(store, now_ms, waits, NULL);
        bytes.at += length;
        bytes.left -= length;
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i] != NULL)
            torch_store_leave(clients[i]);
    }
    FUZZ_CHECK(LIST_EMPTY(&store->all));
    torch_store_destroy(store);
    return 0;
}
