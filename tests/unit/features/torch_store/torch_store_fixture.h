/* SPDX-License-Identifier: Apache-2.0 */
/* A store with clients: what they send is written as a query, what they get is compared. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/torch_store/torch_store.h"

#define TORCH_TEST_CLIENTS 8

struct torch_world {
    struct torch_store *store;
    struct torch_client *clients[TORCH_TEST_CLIENTS];
    int answered;
    int64_t now_ms;
    size_t piece; /* that bytes come in */
    struct error err;
};

static inline void torch_world_answered(void *owner)
{
    struct torch_world *world = owner;
    world->answered++;
}

static inline void torch_world_begin(struct torch_world *world, size_t memory)
{
    *world = (struct torch_world){.piece = SIZE_MAX};
    world->store = torch_store_create(memory, torch_world_answered);
    for (int i = 0; i < TORCH_TEST_CLIENTS; i++)
        world->clients[i] = torch_store_join(world->store, world);
}

static inline void torch_world_end(struct torch_world *world)
{
    for (int i = 0; i < TORCH_TEST_CLIENTS; i++) {
        if (world->clients[i] != NULL)
            torch_store_leave(world->clients[i]);
    }
    assert_true(LIST_EMPTY(&world->store->all));
    torch_store_destroy(world->store);
}

/* Queries: %b a byte, %u 4 bytes, %i 8 bytes (int64_t), %s a text with its length. */
static inline struct buf torch_query_text(const char *format, va_list args)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    for (; *format != '\0'; format++) {
        uint8_t byte = 0;
        uint32_t word = 0;
        uint64_t number = 0;
        const char *text = NULL;
        if (*format == 'b') {
            byte = (uint8_t)va_arg(args, int);
            buf_append(&out, &byte, 1);
        } else if (*format == 'u') {
            word = va_arg(args, uint32_t);
            buf_append(&out, &word, 4);
        } else if (*format == 'i') {
            number = (uint64_t)va_arg(args, int64_t);
            buf_append(&out, &number, 8);
        } else {
            text = va_arg(args, const char *);
            number = strlen(text);
            buf_append(&out, &number, 8);
            buf_puts(&out, text);
        }
    }
    return out;
}

/* -1: it is to be dropped, and has left. */
static inline int torch_world_give(struct torch_world *world, int who, const void *bytes,
                                   size_t length)
{
    const uint8_t *at = bytes;
    int result = 0;
    while (length > 0 && result == 0) {
        size_t piece = length < world->piece ? length : world->piece;
        result = torch_client_take(world->clients[who], at, piece, world->now_ms, &world->err);
        at += piece;
        length -= piece;
    }
    if (result < 0) {
        torch_store_leave(world->clients[who]);
        world->clients[who] = NULL;
    }
    return result;
}

static inline int torch_try(struct torch_world *world, int who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct buf query AUTO_BUF = torch_query_text(format, args);
    va_end(args);
    return torch_world_give(world, who, buf_text(&query), query.length);
}

#define torch_ask(world, who, ...) assert_int_equal(torch_try(world, who, __VA_ARGS__), 0)

/* Exactly these bytes have come since the last call. */
static inline void torch_expect(struct torch_world *world, int who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct buf wanted AUTO_BUF = torch_query_text(format, args), got AUTO_BUF = BUF_INIT(1 << 30);
    va_end(args);
    struct send_queue *out = &world->clients[who]->out;
    size_t length;
    const void *next = send_queue_next(out, &length);
    for (; next != NULL; next = send_queue_next(out, &length)) {
        buf_append(&got, next, length);
        send_queue_consume(out, length);
    }
    torch_client_sent(world->clients[who]);
    assert_int_equal(got.length, wanted.length);
    assert_memory_equal(buf_text(&got), buf_text(&wanted), wanted.length);
}

/* Clients `from` to `to` speak dialect C. */
static inline void torch_world_validate(struct torch_world *world, int from, int to)
{
    for (int i = from; i <= to; i++)
        torch_ask(world, i, "bu", 0, TORCH_MAGIC);
}
