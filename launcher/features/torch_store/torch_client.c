/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_client.h"

#include <string.h>

#define SHARE_FROM 512
#define SHARE_COST 64 /* of the place of a shared value in the queue; less than SHARE_FROM */

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

void torch_say(struct torch_client *client, const void *bytes, size_t length)
{
    if (!charge(client, length))
        return;
    client->work += length;
    memcpy(send_queue_reserve(&client->out, length), bytes, length);
    send_queue_commit(&client->out, length);
}

void torch_say_byte(struct torch_client *client, uint8_t byte)
{
    torch_say(client, &byte, sizeof(byte));
}

void torch_say_number(struct torch_client *client, int64_t number)
{
    torch_say(client, &number, sizeof(number));
}

void torch_say_bytes(struct torch_client *client, struct torch_bytes bytes)
{
    torch_say_number(client, (int64_t)bytes.length);
    if (bytes.length > 0)
        torch_say(client, bytes.at, bytes.length);
}

void torch_say_value(struct torch_client *client, struct shared_block *value)
{
    if (value == NULL || value->length < SHARE_FROM) {
        torch_say_bytes(client, value == NULL ? (struct torch_bytes){NULL, 0}
                                              : (struct torch_bytes){value->bytes, value->length});
        return;
    }
    torch_say_number(client, (int64_t)value->length);
    if (charge(client, SHARE_COST))
        (void)send_queue_share(&client->out, value, 0, value->length);
}

int torch_full(struct error *err)
{
    return error_set(err, "the store is full (%zu MiB)", TORCH_MEMORY_MAX >> 20);
}
