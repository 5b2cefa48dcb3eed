/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/request.h"

#include <string.h>

static const char *const method_names[] = {
#define METHOD_NAME(name, text) [name] = (text),
    RENDEZVOUS_METHOD_LIST(METHOD_NAME)
#undef METHOD_NAME
};

enum { METHOD_COUNT = sizeof(method_names) / sizeof(method_names[0]), INDEX_DIGITS_MAX = 9 };

/* What hints, names and the keys' own cost come to for each rank; how much of all this, and of the
 * addresses, a job may have at once; what the smallest job has. */
enum { RANK_BYTES = 8 * 1024, RESERVE = 3, LEAST_BYTES = 32 * 1024 * 1024 };
enum { RANKS_MAX = 1 << 24 };

uint64_t rendezvous_memory_need(int64_t ranks)
{
    uint64_t n = ranks < 0 ? 0 : ranks < RANKS_MAX ? (uint64_t)ranks : RANKS_MAX;
    return LEAST_BYTES + RESERVE * n * (RENDEZVOUS_PAIR_BYTES * n + RANK_BYTES);
}

const char *rendezvous_method_name(enum rendezvous_method method)
{
    return (size_t)method < METHOD_COUNT ? method_names[method] : "?";
}

int rendezvous_method_parse(const char *name, size_t length, enum rendezvous_method *out)
{
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (strlen(method_names[i]) == length && memcmp(method_names[i], name, length) == 0) {
            *out = (enum rendezvous_method)i;
            return 0;
        }
    }
    return -1;
}

bool rendezvous_name_is_valid(const char *name, size_t length)
{
    if (length == 0 || length > RENDEZVOUS_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
            return false;
    }
    return true;
}

static bool text_is_valid(const char *name)
{
    return name != NULL && rendezvous_name_is_valid(name, strnlen(name, RENDEZVOUS_NAME_MAX + 1));
}

bool rendezvous_request_is_valid(const struct rendezvous_request *request)
{
    return (size_t)request->method < METHOD_COUNT && request->method != RENDEZVOUS_POST &&
           text_is_valid(request->scope) && text_is_valid(request->key) &&
           request->length <= RENDEZVOUS_BODY_MAX;
}

bool rendezvous_key_is_index(const char *key, int64_t *index)
{
    size_t length = strnlen(key, INDEX_DIGITS_MAX + 1);
    if (length == 0 || length > INDEX_DIGITS_MAX || (key[0] == '0' && length > 1))
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (key[i] < '0' || key[i] > '9')
            return false;
        value = value * 10 + (key[i] - '0');
    }
    *index = value;
    return true;
}

bool rendezvous_scope_is_elastic(const char *scope)
{
    return strcmp(scope, "rank_and_size") == 0 || strcmp(scope, "worker_addresses") == 0;
}
