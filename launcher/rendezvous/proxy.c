/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/proxy.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "rendezvous/http.h"
#include "rendezvous/proxy_test.h"

/* The cache. */

enum { BLOB_COST = 128 };

struct scope {
    struct map blobs; /* by key, which follows the bytes of the blob */
    uint64_t generation;
    char name[];
};

struct rendezvous_cache {
    struct map scopes;   /* by name */
    uint64_t generation; /* the newest given out */
    uint64_t unknown;    /* generation of the scopes that have no record */
    size_t memory, memory_limit;
};

struct rendezvous_cache *rendezvous_cache_create(size_t memory_limit)
{
    struct rendezvous_cache *cache = mem_alloc(sizeof(*cache));
    cache->memory_limit = memory_limit;
    return cache;
}

void rendezvous_cache_limit(struct rendezvous_cache *cache, size_t memory_limit)
{
    cache->memory_limit = memory_limit;
}

static void scope_free(void *value)
{
    struct scope *scope = value;
    map_clear(&scope->blobs, free);
    free(scope);
}

void rendezvous_cache_destroy(struct rendezvous_cache *cache)
{
    if (cache == NULL)
        return;
    map_clear(&cache->scopes, scope_free);
    free(cache);
}

static struct scope *find_scope(const struct rendezvous_cache *cache, const char *name)
{
    return map_get(&cache->scopes, map_text(name));
}

static struct scope *get_scope(struct rendezvous_cache *cache, const char *name)
{
    struct scope *scope = find_scope(cache, name);
    if (scope != NULL)
        return scope;
    size_t size = strlen(name) + 1;
    scope = mem_alloc(sizeof(*scope) + size);
    scope->generation = cache->unknown;
    memcpy(scope->name, name, size);
    map_put(&cache->scopes, map_text(scope->name), scope);
    return scope;
}

uint64_t rendezvous_cache_generation(const struct rendezvous_cache *cache, const char *scope)
{
    const struct scope *found = find_scope(cache, scope);
    return found == NULL ? cache->unknown : found->generation;
}

const struct rendezvous_blob *rendezvous_cache_get(const struct rendezvous_cache *cache,
                                                   const char *scope, const char *key)
{
    const struct scope *found = find_scope(cache, scope);
    return found == NULL ? NULL : map_get(&found->blobs, map_text(key));
}

static void release(struct rendezvous_cache *cache, struct rendezvous_blob *blob)
{
    cache->memory -= blob->length + BLOB_COST;
    free(blob);
}

void rendezvous_cache_keep(struct rendezvous_cache *cache, uint64_t generation, const char *scope,
                           const char *key, const void *bytes, size_t length)
{
    size_t room = cache->memory < cache->memory_limit ? cache->memory_limit - cache->memory : 0;
    if (rendezvous_cache_generation(cache, scope) != generation || room < BLOB_COST ||
        length > room - BLOB_COST)
        return;
    if (find_scope(cache, scope) == NULL && cache->scopes.count == RENDEZVOUS_CACHE_SCOPES_MAX)
        rendezvous_cache_reset(cache);
    size_t key_size = strlen(key) + 1;
    struct rendezvous_blob *blob = mem_alloc(sizeof(*blob) + length + key_size);
    blob->length = length;
    memcpy(blob->bytes + length, key, key_size);
    if (length > 0)
        memcpy(blob->bytes, bytes, length);
    cache->memory += length + BLOB_COST;
    struct scope *owner = get_scope(cache, scope);
    struct rendezvous_blob *old = map_put(&owner->blobs, map_text(blob->bytes + length), blob);
    if (old != NULL)
        release(cache, old);
}

void rendezvous_cache_remove(struct rendezvous_cache *cache, const char *scope, const char *key)
{
    struct scope *found = find_scope(cache, scope);
    struct rendezvous_blob *blob = found == NULL ? NULL : map_remove(&found->blobs, map_text(key));
    if (blob != NULL)
        release(cache, blob);
}

void rendezvous_cache_forget(struct rendezvous_cache *cache, const char *scope)
{
    if (find_scope(cache, scope) == NULL && cache->scopes.count == RENDEZVOUS_CACHE_SCOPES_MAX) {
        rendezvous_cache_reset(cache);
        return;
    }
    struct scope *found = get_scope(cache, scope);
    size_t at = 0;
    for (struct rendezvous_blob *blob = map_next(&found->blobs, &at); blob != NULL;
         blob = map_next(&found->blobs, &at))
        release(cache, blob);
    map_clear(&found->blobs, NULL);
    found->generation = ++cache->generation;
}

void rendezvous_cache_reset(struct rendezvous_cache *cache)
{
    map_clear(&cache->scopes, scope_free);
    cache->memory = 0;
    cache->unknown = ++cache->generation;
}

/* The proxy. */

/* A question on its way to the driver. */
struct question {
    uint64_t id;
    enum rendezvous_method method;
    char *scope, *key;
    char *path;          /* "scope/key" */
    uint64_t generation; /* of the scope when it was asked */
    bool open;           /* others may join it, and its answer may be kept */
    uint64_t *tokens;    /* the connections that wait */
    size_t token_count, token_room;
};

struct rendezvous_proxy {
    const struct rendezvous_proxy_ops *ops;
    void *context;
    uint64_t last_id;
    struct rendezvous_cache *cache;
    struct map by_id, by_token; /* all questions; by_token: one entry per token */
    struct map by_path;         /* the open ones */
};

struct rendezvous_proxy *rendezvous_proxy_create(const struct rendezvous_proxy_ops *ops,
                                                 void *context, size_t cache_limit)
{
    struct rendezvous_proxy *proxy = mem_alloc(sizeof(*proxy));
    proxy->ops = ops;
    proxy->context = context;
    proxy->cache = rendezvous_cache_create(cache_limit);
    return proxy;
}

static void question_free(void *value)
{
    struct question *question = value;
    free(question->scope);
    free(question->key);
    free(question->path);
    free(question->tokens);
    free(question);
}

void rendezvous_proxy_destroy(struct rendezvous_proxy *proxy)
{
    if (proxy == NULL)
        return;
    map_clear(&proxy->by_path, NULL);
    map_clear(&proxy->by_token, NULL);
    map_clear(&proxy->by_id, question_free);
    rendezvous_cache_destroy(proxy->cache);
    free(proxy);
}

static void add_token(struct rendezvous_proxy *proxy, struct question *question, uint64_t token)
{
    MEM_ADD_ROOM(question->tokens, question->token_count, question->token_room) = token;
    map_put(&proxy->by_token, map_number(token), question);
}

static void close_question(struct rendezvous_proxy *proxy, struct question *question)
{
    if (question->open)
        map_remove(&proxy->by_path, map_text(question->path));
    question->open = false;
}

/* Out of all tables; the caller owns it from here on. */
static void detach(struct rendezvous_proxy *proxy, struct question *question)
{
    close_question(proxy, question);
    for (size_t i = 0; i < question->token_count; i++)
        map_remove(&proxy->by_token, map_number(question->tokens[i]));
    map_remove(&proxy->by_id, map_number(question->id));
}

static void ask(struct rendezvous_proxy *proxy, uint64_t token,
                const struct rendezvous_request *request)
{
    struct question *question = mem_alloc(sizeof(*question));
    question->id = ++proxy->last_id;
    question->method = request->method;
    question->scope = mem_strdup(request->scope);
    question->key = mem_strdup(request->key);
    question->path = mem_printf("%s/%s", request->scope, request->key);
    question->generation = rendezvous_cache_generation(proxy->cache, request->scope);
    question->open =
        request->method == RENDEZVOUS_GET && !rendezvous_scope_is_elastic(request->scope);
    map_put(&proxy->by_id, map_number(question->id), question);
    if (question->open)
        map_put(&proxy->by_path, map_text(question->path), question);
    add_token(proxy, question, token);
    proxy->ops->ask(proxy->context, question->id, request);
}

/* The open question about this key, unless the scope was forgotten since it was asked. */
static struct question *open_question(struct rendezvous_proxy *proxy,
                                      const struct rendezvous_request *request)
{
    AUTO_FREE char *path = mem_printf("%s/%s", request->scope, request->key);
    struct question *question = map_get(&proxy->by_path, map_text(path));
    if (question == NULL ||
        question->generation == rendezvous_cache_generation(proxy->cache, request->scope))
        return question;
    close_question(proxy, question);
    return NULL;
}

void rendezvous_proxy_request(struct rendezvous_proxy *proxy, uint64_t token,
                              const struct rendezvous_request *request)
{
    if (rendezvous_scope_is_elastic(request->scope)) {
        ask(proxy, token, request);
        return;
    }
    struct question *question = open_question(proxy, request);
    switch (request->method) {
    case RENDEZVOUS_GET: {
        const struct rendezvous_blob *blob =
            rendezvous_cache_get(proxy->cache, request->scope, request->key);
        if (blob != NULL) {
            proxy->ops->answer(proxy->context, token, HTTP_OK, blob->bytes, blob->length);
            return;
        }
        if (question != NULL) {
            add_token(proxy, question, token);
            return;
        }
        break;
    }
    case RENDEZVOUS_PUT:
        /* What is on its way may be the value before this one. */
        rendezvous_cache_remove(proxy->cache, request->scope, request->key);
        if (question != NULL)
            close_question(proxy, question);
        break;
    case RENDEZVOUS_DELETE: rendezvous_cache_forget(proxy->cache, request->scope); break;
    case RENDEZVOUS_POST: break; /* the door keeps it */
    }
    ask(proxy, token, request);
}

void rendezvous_proxy_dropped(struct rendezvous_proxy *proxy, uint64_t token)
{
    struct question *question = map_remove(&proxy->by_token, map_number(token));
    if (question == NULL)
        return;
    for (size_t i = 0; i < question->token_count; i++) {
        if (question->tokens[i] == token) {
            question->tokens[i] = question->tokens[--question->token_count];
            break;
        }
    }
    if (question->token_count > 0)
        return;
    uint64_t id = question->id;
    bool held = question->method == RENDEZVOUS_GET; /* a PUT or DELETE takes effect anyway */
    detach(proxy, question);
    question_free(question);
    if (held)
        proxy->ops->cancel(proxy->context, id);
}

void rendezvous_proxy_reply(struct rendezvous_proxy *proxy, uint64_t id, int status,
                            const void *body, size_t length)
{
    struct question *question = map_get(&proxy->by_id, map_number(id));
    if (question == NULL)
        return;
    if (question->open && status == HTTP_OK)
        rendezvous_cache_keep(proxy->cache, question->generation, question->scope, question->key,
                              body, length);
    detach(proxy, question);
    for (size_t i = 0; i < question->token_count; i++)
        proxy->ops->answer(proxy->context, question->tokens[i], status, body, length);
    question_free(question);
}

void rendezvous_proxy_begin(struct rendezvous_proxy *proxy)
{
    rendezvous_cache_reset(proxy->cache);
}

void rendezvous_proxy_limit(struct rendezvous_proxy *proxy, size_t cache_limit)
{
    rendezvous_cache_limit(proxy->cache, cache_limit);
}
