/* SPDX-License-Identifier: Apache-2.0 */
#include "core/member.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- Submissions ----------------------------------------------------------------------------- */

static void pendings_init(struct pendings *pendings, size_t capacity)
{
    *pendings = (struct pendings){.by_id = mem_array(capacity, sizeof(struct pending *)),
                                  .capacity = capacity};
}

static void free_list(struct pending *pending)
{
    while (pending != NULL) {
        struct pending *next = pending->next;
        request_destroy(&pending->request);
        free(pending);
        pending = next;
    }
}

static void pendings_destroy(struct pendings *pendings)
{
    free_list(pendings_take_all(pendings));
    free_list(pendings->spare);
    free(pendings->by_id);
    *pendings = (struct pendings){0};
}

struct pending *pendings_find(const struct pendings *pendings, size_t id, const char *key)
{
    struct pending *pending = id == NO_ID ? NULL : pendings->by_id[id];
    return pending != NULL ? pending : map_get(&pendings->by_key, map_text(key));
}

/* Takes the request. There must not be a submission with its key. */
static struct pending *pendings_add(struct pendings *pendings, size_t id,
                                    const struct request *request, void *token)
{
    struct pending *pending = pendings->spare;
    if (pending != NULL)
        pendings->spare = pending->next;
    else
        pending = mem_alloc(sizeof *pending);
    *pending = (struct pending){.request = *request, .token = token, .id = id};
    if (id == NO_ID)
        map_put(&pendings->by_key, map_text(pending->request.key), pending);
    else
        pendings->by_id[id] = pending;
    pendings->count++;
    return pending;
}

/* Its number gets another meaning. */
static void pendings_lose_number(struct pendings *pendings, struct pending *pending)
{
    pendings->by_id[pending->id] = NULL;
    pending->id = NO_ID;
    map_put(&pendings->by_key, map_text(pending->request.key), pending);
}

void pendings_remove(struct pendings *pendings, struct pending *pending)
{
    if (pending->id == NO_ID)
        map_remove(&pendings->by_key, map_text(pending->request.key));
    else
        pendings->by_id[pending->id] = NULL;
    pendings->count--;
}

void pendings_recycle(struct pendings *pendings, struct pending *pending)
{
    pending->request = (struct request){0};
    pending->next = pendings->spare;
    pendings->spare = pending;
}

static void push(struct pending **list, struct pending *pending)
{
    pending->next = *list;
    *list = pending;
}

struct pending *pendings_take_all(struct pendings *pendings)
{
    struct pending *list = NULL;
    size_t at = 0;
    for (struct pending *next = map_next(&pendings->by_key, &at); next != NULL;
         next = map_next(&pendings->by_key, &at))
        push(&list, next);
    for (size_t id = 0; id < pendings->capacity; id++) {
        if (pendings->by_id[id] != NULL)
            push(&list, pendings->by_id[id]);
        pendings->by_id[id] = NULL;
    }
    map_clear(&pendings->by_key, NULL);
    pendings->count = 0;
    return list;
}

/* ---- The member ------------------------------------------------------------------------------ */

void member_init(struct member *member, struct core_config *config, int64_t now_ns)
{
    *member = (struct member){
        .config = config, .since_ns = INT64_MAX, .held_since_ns = INT64_MAX, .heard_ns = now_ns};
    member->fresh_end = &member->fresh;
    pendings_init(&member->pendings, config->capacity);
    cache_init(&member->cache, config->capacity);
}

void member_destroy(struct member *member)
{
    pendings_destroy(&member->pendings);
    cache_destroy(&member->cache);
    step_plan_destroy(&member->plan);
    bits_destroy(&member->outgoing);
    bits_destroy(&member->held);
    free(member->text);
}

/* `slot`: of the request's key in the cache, or NULL. */
static enum hvd_status check(const struct member *member, const struct request *request,
                             const struct cache_slot *slot, struct error *err)
{
    size_t id = slot == NULL ? NO_ID : slot->id;
    if (member->status != HVD_OK) {
        error_set(err, "%s", member->text);
        return member->status;
    }
    if (pendings_find(&member->pendings, id, request->key) != NULL) {
        error_set(err, "%s '%s': this rank has submitted it already, and it is not complete",
                  kind_text(request->kind), request_name(request));
        return HVD_ERR_DUPLICATE_NAME;
    }
    if (member->joined) {
        error_set(err, "%s '%s': this rank has joined, and not all others have",
                  kind_text(request->kind), request_name(request));
        return HVD_ERR_ARGUMENT;
    }
    return HVD_OK;
}

enum hvd_status member_check(const struct member *member, const struct request *request,
                             struct error *err)
{
    return check(member, request, cache_find(&member->cache, request->key), err);
}

static void report_soon(struct member *member, int64_t now_ns)
{
    if (member->since_ns == INT64_MAX)
        member->since_ns = now_ns;
    if (member->bytes >= member->config->threshold)
        member->urgent = true;
}

static void add_fresh(struct member *member, struct pending *pending)
{
    pending->id = NO_ID;
    pending->next = NULL;
    *member->fresh_end = pending;
    member->fresh_end = &pending->next;
    member->fresh_count++;
}

static void hold(struct member *member, const struct bits *group, size_t id, int64_t now_ns)
{
    bits_set(&member->held, id);
    if (member->held_since_ns == INT64_MAX)
        member->held_since_ns = now_ns;
    if (!bits_contain(&member->held, group))
        return;
    bits_add(&member->outgoing, group);
    bits_remove(&member->held, group);
    member->held_since_ns = bits_any(&member->held) ? now_ns : INT64_MAX;
    member->urgent = true;
}

enum hvd_status member_submit(struct member *member, struct request *request, void *token,
                              int64_t now_ns, struct error *err)
{
    const struct cache_slot *slot = cache_find(&member->cache, request->key);
    enum hvd_status status = check(member, request, slot, err);
    if (status != HVD_OK) {
        request_destroy(request);
        return status;
    }
    bool known = slot != NULL && slot->request.priority == request->priority &&
                 request_difference(&slot->request, request) == NULL;
    struct pending *pending =
        pendings_add(&member->pendings, known ? slot->id : NO_ID, request, token);
    const struct bits *group = known ? step_plan_group(&member->plan, slot->id) : NULL;
    member->joined = member->joined || request->kind == KIND_JOIN;
    if (member->heard_ns < now_ns && member->pendings.count == 1)
        member->heard_ns = now_ns;
    if (group != NULL) {
        hold(member, group, pending->id, now_ns);
        return HVD_OK;
    }
    if (pending->id == NO_ID)
        add_fresh(member, pending);
    else
        bits_set(&member->outgoing, pending->id);
    member->bytes += request_bytes(&pending->request);
    report_soon(member, now_ns);
    return HVD_OK;
}

void member_release_held(struct member *member)
{
    if (!bits_any(&member->held))
        return;
    bits_add(&member->outgoing, &member->held);
    bits_clear(&member->held);
    member->held_since_ns = INT64_MAX;
    member->urgent = true;
}

static bool has_token(const struct member *member, const struct bits *ids, const void *token)
{
    for (size_t id = bits_next(ids, 0); id != SIZE_MAX; id = bits_next(ids, id + 1))
        if (member->pendings.by_id[id]->token == token)
            return true;
    return false;
}

static bool is_fresh(const struct member *member, const void *token)
{
    const struct pending *pending = member->fresh;
    while (pending != NULL && pending->token != token)
        pending = pending->next;
    return pending != NULL;
}

void member_hurry(struct member *member, const void *token)
{
    if (has_token(member, &member->held, token))
        member_release_held(member);
    else if (is_fresh(member, token) || has_token(member, &member->outgoing, token))
        member->urgent = true;
}

void member_leave(struct member *member, unsigned flag)
{
    if (member->status == HVD_OK)
        member->flags |= flag;
}

static int64_t held_until(const struct member *member)
{
    return member->held_since_ns == INT64_MAX
               ? INT64_MAX
               : member->held_since_ns + HOLD_CYCLES * member->config->cycle_ns;
}

static int64_t news_until(const struct member *member)
{
    return member->since_ns == INT64_MAX ? INT64_MAX : member->since_ns + member->config->cycle_ns;
}

bool member_is_due(const struct member *member, int64_t now_ns)
{
    return member->urgent || member->flags != 0 || now_ns >= news_until(member) ||
           now_ns >= held_until(member);
}

int64_t member_deadline(const struct member *member)
{
    int64_t news = news_until(member), held = held_until(member);
    return news < held ? news : held;
}

static void mark_outgoing(struct member *member)
{
    for (size_t id = bits_next(&member->outgoing, 0); id != SIZE_MAX;
         id = bits_next(&member->outgoing, id + 1))
        member->pendings.by_id[id]->reported = true;
    bits_clear(&member->outgoing);
}

void member_report(struct member *member, int64_t now_ns, struct buf *out)
{
    if (now_ns >= held_until(member))
        member_release_held(member);
    size_t count = member->fresh_count < CORE_BATCH_MAX ? member->fresh_count : CORE_BATCH_MAX;
    report_begin(out, member->flags, member->seen, &member->outgoing, count);
    mark_outgoing(member);
    for (size_t i = 0; i < count; i++) {
        request_write(&member->fresh->request, out);
        member->fresh->reported = true;
        member->fresh = member->fresh->next;
    }
    if (member->fresh == NULL)
        member->fresh_end = &member->fresh;
    member->fresh_count -= count;
    member->bytes = 0;
    member->since_ns = INT64_MAX;
    member->urgent = member->fresh_count > 0;
    member->flags = 0;
}

struct pending *member_find(const struct member *member, const char *key)
{
    const struct cache_slot *slot = cache_find(&member->cache, key);
    return pendings_find(&member->pendings, slot == NULL ? NO_ID : slot->id, key);
}

void member_forget(struct member *member, size_t id, int64_t now_ns)
{
    struct pending *pending = id == NO_ID ? NULL : member->pendings.by_id[id];
    if (pending != NULL) {
        bits_unset(&member->outgoing, id);
        bits_unset(&member->held, id);
        pendings_lose_number(&member->pendings, pending);
        if (!pending->reported) {
            add_fresh(member, pending);
            report_soon(member, now_ns);
        }
    }
    cache_drop(&member->cache, id);
}

bool member_waits(const struct member *member)
{
    return member->pendings.count > 0;
}
