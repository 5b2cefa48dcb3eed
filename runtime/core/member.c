/* SPDX-License-Identifier: Apache-2.0 */
#include "core/member.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void member_init(struct member *member, struct core_config *config, int64_t now_ns)
{
    *member = (struct member){
        .config = config, .since_ns = INT64_MAX, .held_since_ns = INT64_MAX, .heard_ns = now_ns};
    member->fresh_end = &member->fresh;
    member->by_id = mem_array(config->capacity, sizeof(struct pending *));
    cache_init(&member->cache, config->capacity);
}

void pending_destroy(struct pending *pending)
{
    request_destroy(&pending->request);
    free(pending);
}

void member_destroy(struct member *member)
{
    for (size_t i = 0; i < member->pending.room; i++)
        if (member->pending.slots[i].key != NULL)
            pending_destroy(member->pending.slots[i].value);
    names_destroy(&member->pending);
    free(member->by_id);
    cache_destroy(&member->cache);
    step_plan_destroy(&member->plan);
    bits_destroy(&member->outgoing);
    bits_destroy(&member->held);
    free(member->text);
}

enum hvd_status member_check(const struct member *member, const struct request *request,
                             struct error *err)
{
    if (member->status != HVD_OK) {
        error_set(err, "%s", member->text);
        return member->status;
    }
    if (names_get(&member->pending, request->key) != NULL) {
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
    enum hvd_status status = member_check(member, request, err);
    if (status != HVD_OK) {
        request_destroy(request);
        return status;
    }
    struct pending *pending = mem_alloc(sizeof *pending);
    *pending = (struct pending){.request = *request, .token = token, .id = NO_ID};
    names_put(&member->pending, pending->request.key, pending);
    const struct cache_slot *slot = cache_find(&member->cache, pending->request.key);
    const struct bits *group = NULL;
    if (slot != NULL && slot->request.priority == request->priority &&
        request_difference(&slot->request, &pending->request) == NULL) {
        pending->id = slot->id;
        member->by_id[slot->id] = pending;
        group = step_plan_group(&member->plan, slot->id);
    }
    member->joined = member->joined || request->kind == KIND_JOIN;
    if (member->heard_ns < now_ns && member->pending.count == 1)
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

static bool has_news(const struct member *member)
{
    return member->fresh_count > 0 || bits_any(&member->outgoing);
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

void member_hurry(struct member *member, const char *key)
{
    const struct pending *pending = names_get(&member->pending, key);
    if (pending == NULL || pending->reported)
        return;
    if (pending->id != NO_ID && bits_test(&member->held, pending->id))
        member_release_held(member);
    member->urgent = member->urgent || has_news(member);
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
        member->by_id[id]->reported = true;
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

struct pending *member_find(const struct member *member, size_t id, const char *key)
{
    struct pending *pending = id == NO_ID ? NULL : member->by_id[id];
    return pending != NULL ? pending : names_get(&member->pending, key);
}

void member_remove(struct member *member, struct pending *pending)
{
    names_remove(&member->pending, pending->request.key);
    if (pending->id != NO_ID)
        member->by_id[pending->id] = NULL;
}

void member_forget(struct member *member, size_t id, int64_t now_ns)
{
    struct pending *pending = id == NO_ID ? NULL : member->by_id[id];
    if (pending != NULL) {
        bits_unset(&member->outgoing, id);
        bits_unset(&member->held, id);
        pending->id = NO_ID;
        member->by_id[id] = NULL;
        if (!pending->reported) {
            add_fresh(member, pending);
            report_soon(member, now_ns);
        }
    }
    cache_drop(&member->cache, id);
}

bool member_waits(const struct member *member)
{
    return member->pending.count > 0;
}
