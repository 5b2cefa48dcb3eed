/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queries of torch.distributed's TCPStore, read from the bytes of a connection as they come.
 *
 * Torch speaks three dialects, which differ in the numbers of queries: A (1.9 to 2.0), B (2.1) and
 * C (2.2 and newer). A connection of C begins with VALIDATE. A and B agree up to number 6. Clients
 * of A have a second connection, on which they are silent.
 *
 * Integers are in the byte order of the host. A text is its length in 8 bytes, and bytes. A list is
 * its count in 8 bytes, and items. Each length is checked before anything of it has come.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TORCH_KEY_MAX ((size_t)8 << 10)
#define TORCH_VALUE_MAX ((size_t)128 << 20)
#define TORCH_KEYS_MAX 131072 /* of one query */
#define TORCH_MAGIC UINT32_C(0x3C85F7CE)

/*
 * Name, number in C, B and A (-1: it does not exist there), fields: k a key, v a value, i a number
 * of 8 bytes, u one of 4 bytes; n a count, and what follows it repeats.
 */
#define TORCH_QUERY_LIST(X)         \
    X(VALIDATE, 0, -1, -1, "u")     \
    X(SET, 1, 0, 0, "kv")           \
    X(COMPARE_SET, 2, 1, 1, "kvv")  \
    X(GET, 3, 2, 2, "k")            \
    X(ADD, 4, 3, 3, "ki")           \
    X(CHECK, 5, 4, 4, "nk")         \
    X(WAIT, 6, 5, 5, "nk")          \
    X(GETNUMKEYS, 7, 6, 6, "")      \
    X(WATCH_KEY, -1, -1, 7, "k")    \
    X(DELETE_KEY, 8, 7, 8, "k")     \
    X(APPEND, 9, 8, -1, "kv")       \
    X(MULTI_GET, 10, 9, -1, "nk")   \
    X(MULTI_SET, 11, 10, -1, "nkv") \
    X(CANCEL_WAIT, 12, 11, -1, "")  \
    X(PING, 13, -1, -1, "u")        \
    X(QUEUE_PUSH, 14, -1, -1, "kv") \
    X(QUEUE_POP, 15, -1, -1, "k")   \
    X(QUEUE_LEN, 16, -1, -1, "k")   \
    X(LIST_KEYS, 17, -1, -1, "")    \
    X(BARRIER, 18, -1, -1, "ki")

enum torch_query {
#define TORCH_QUERY_ENUM(name, ...) TORCH_##name,
    TORCH_QUERY_LIST(TORCH_QUERY_ENUM)
#undef TORCH_QUERY_ENUM
        TORCH_QUERIES
};

enum torch_dialect { TORCH_UNKNOWN, TORCH_A, TORCH_B, TORCH_C };

/* Of one connection. All zero: nothing has come. */
struct torch_reader {
    enum torch_dialect dialect; /* A until B is known */
    enum torch_query query;     /* valid once `field` is set */
    const char *field;          /* the next one that is to come; NULL: the query has not begun */
    const char *item;           /* where the fields of a list begin; NULL: not in a list */
    uint64_t items;             /* that are still to come, with the present one */
    size_t at;                  /* bytes of the query that are complete fields */
    const char *why;            /* what is wrong, after RUBBISH */
};

enum torch_progress { TORCH_MORE, TORCH_WHOLE, TORCH_RUBBISH };

/*
 * `bytes` is what has come of the present query, always from its beginning. Continues where the
 * last call ended. MORE: the query is not complete. WHOLE: `reader->query` has come, and is
 * `reader->at` bytes long. `two_connections`: the clients of this store have two each.
 */
enum torch_progress torch_reader_advance(struct torch_reader *reader, const uint8_t *bytes,
                                         size_t length, bool two_connections);
void torch_reader_next(struct torch_reader *reader); /* for the query behind a whole one */

/* Walks through the fields of a whole query; `at` is behind its type. */
struct torch_bytes {
    const uint8_t *at;
    size_t length;
};
struct torch_bytes torch_field_bytes(const uint8_t **at);
uint64_t torch_field_count(const uint8_t **at);
int64_t torch_field_number(const uint8_t **at);
