/* SPDX-License-Identifier: Apache-2.0 */
#include "core/decide.h"

#include <stdlib.h>

#include "base/mem.h"

static void done(struct actions *actions, void *token, enum hvd_status status, const char *text,
                 int rank)
{
    actions_add_take(actions, &(struct action){.kind = ACTION_DONE,
                                               .token = token,
                                               .status = status,
                                               .text = mem_strdup(text),
                                               .rank = rank});
}

/* Removes the submission that a decision completes. NULL and no error: this rank gives zeros. */
static struct pending *complete(struct member *member, struct pending *pending,
                                const struct request *request, struct error *err)
{
    if (pending == NULL && !member->joined)
        error_set(err, "the root runs '%s', which this rank has not submitted",
                  request_name(request));
    else if (pending != NULL && !pending->reported)
        error_set(err, "the root runs '%s', which this rank has not reported",
                  request_name(request));
    else if (pending != NULL && request_difference(&pending->request, request) != NULL)
        error_set(err, "the root runs '%s' with other %s than this rank submitted",
                  request_name(request), request_difference(&pending->request, request));
    if (err->text[0] != '\0' || pending == NULL)
        return NULL;
    pendings_remove(&member->pendings, pending);
    return pending;
}

static void add_part(struct member *member, struct action *run, struct pending *pending,
                     const struct request *request)
{
    struct part *part = &run->parts[run->count++];
    *part = pending == NULL ? (struct part){request_copy(request), NULL}
                            : (struct part){pending->request, pending->token};
    if (pending != NULL)
        pendings_recycle(&member->pendings, pending);
}

/* Completes a submission without an operation. */
static void drop(struct member *member, struct pending *pending)
{
    pendings_remove(&member->pendings, pending);
    request_destroy(&pending->request);
    pendings_recycle(&member->pendings, pending);
}

/* What had this key or this number before leaves the cache. */
static void remember(struct member *member, const struct item_part *part, int64_t now_ns)
{
    const struct cache_slot *old = cache_find(&member->cache, part->request.key);
    if (old != NULL)
        member_forget(member, old->id, now_ns);
    member_forget(member, part->id, now_ns);
    cache_put(&member->cache, part->id, &part->request);
}

static int run(struct member *member, const struct item *item, int64_t now_ns,
               struct actions *actions, struct error *err)
{
    struct action run = {.kind = ACTION_RUN};
    run.parts = mem_array(bits_size(&item->ids) + item->count, sizeof *run.parts);
    for (size_t id = bits_next(&item->ids, 0); id != SIZE_MAX && err->text[0] == '\0';
         id = bits_next(&item->ids, id + 1)) {
        const struct request *request = cache_get(&member->cache, id);
        if (request == NULL) {
            error_set(err, "the root runs number %zu, which is not in the cache", id);
            break;
        }
        struct pending *pending = pendings_find(&member->pendings, id, request->key);
        pending = complete(member, pending, request, err);
        if (err->text[0] == '\0')
            add_part(member, &run, pending, request);
    }
    for (size_t i = 0; i < item->count && err->text[0] == '\0'; i++) {
        const struct item_part *part = &item->parts[i];
        struct pending *pending = member_find(member, part->request.key);
        pending = complete(member, pending, &part->request, err);
        if (err->text[0] != '\0')
            break;
        if (part->id != NO_ID)
            remember(member, part, now_ns);
        add_part(member, &run, pending, &part->request);
    }
    if (run.count > 0)
        actions_add_take(actions, &run);
    else
        action_destroy(&run);
    return err->text[0] == '\0' ? 0 : -1;
}

static const char *name_of(const struct item *item)
{
    return item->key[0] == '\0' ? "" : item->key + 1;
}

static int fail_one(struct member *member, const struct item *item, struct actions *actions,
                    struct error *err)
{
    struct pending *pending = member_find(member, item->key);
    if (pending == NULL)
        return member->joined ? 0
                              : error_set(err,
                                          "the root reports an error of '%s', which this "
                                          "rank has not submitted",
                                          name_of(item));
    if (!pending->reported)
        return error_set(err, "the root reports an error of '%s', which this rank has not reported",
                         name_of(item));
    done(actions, pending->token, item->status, item->text, -1);
    drop(member, pending);
    return 0;
}

static int all_joined(struct member *member, int32_t last, struct actions *actions,
                      struct error *err)
{
    char *key AUTO_FREE = request_key(KIND_JOIN, NULL);
    struct pending *pending = member_find(member, key);
    if (pending == NULL)
        return error_set(err, "the root ends a join that this rank has not submitted");
    done(actions, pending->token, HVD_OK, "", last);
    drop(member, pending);
    member->joined = false;
    return 0;
}

void decide_end(struct member *member, enum hvd_status status, const char *text,
                struct actions *actions)
{
    if (member->status != HVD_OK)
        return;
    member->status = status;
    member->text = mem_strdup(text);
    struct pending *pending = pendings_take_all(&member->pendings);
    while (pending != NULL) {
        struct pending *next = pending->next;
        done(actions, pending->token, status, text, -1);
        request_destroy(&pending->request);
        pendings_recycle(&member->pendings, pending);
        pending = next;
    }
    bits_clear(&member->outgoing);
    bits_clear(&member->held);
    member->fresh = NULL;
    member->fresh_end = &member->fresh;
    member->fresh_count = 0;
    member->since_ns = member->held_since_ns = INT64_MAX;
    member->urgent = false;
    actions_add_take(
        actions,
        &(struct action){.kind = ACTION_ENDED, .status = status, .text = mem_strdup(text)});
}

static int item_apply(struct member *member, const struct item *item, int64_t now_ns,
                      struct actions *actions, struct error *err)
{
    switch (item->kind) {
    case ITEM_RUN: return run(member, item, now_ns, actions, err);
    case ITEM_ERROR: return fail_one(member, item, actions, err);
    case ITEM_FORGET:
        for (size_t id = bits_next(&item->ids, 0); id != SIZE_MAX;
             id = bits_next(&item->ids, id + 1))
            member_forget(member, id, now_ns);
        return 0;
    case ITEM_GROUP:
        if (bits_meet(&member->plan.all, &item->ids))
            return error_set(err, "the groups of the root's plan are not disjoint");
        step_plan_add(&member->plan, &item->ids);
        return 0;
    case ITEM_NO_PLAN:
        step_plan_destroy(&member->plan);
        member_release_held(member);
        return 0;
    case ITEM_TUNE:
        member->config->threshold = item->tuning.next.threshold;
        member->config->cycle_ns = item->tuning.next.cycle_ns;
        actions_add_take(actions, &(struct action){.kind = ACTION_TUNED, .tuning = item->tuning});
        return 0;
    case ITEM_JOINED: return all_joined(member, item->rank, actions, err);
    case ITEM_PING: member->urgent = true; return 0;
    case ITEM_END:
        member->flags = REPORT_LEFT;
        decide_end(member, item->status, item->text, actions);
        return 0;
    case ITEMS: break;
    }
    return 0;
}

int decide_apply(struct member *member, const void *bytes, size_t length, int64_t now_ns,
                 struct actions *actions, struct error *err)
{
    struct reader in = {bytes, length, false};
    const struct message_limits limits = config_limits(member->config);
    int rc = 0;
    member->heard_ns = now_ns;
    if (member->status != HVD_OK)
        return 0;
    for (;;) {
        struct item item;
        bool there = item_read(&in, &limits, &item);
        if (there)
            rc = item_apply(member, &item, now_ns, actions, err);
        item_destroy(&item);
        if (!there || rc != 0 || member->status != HVD_OK)
            break;
    }
    if (in.bad)
        return error_set(err, "a message of the root is broken");
    member->seen++;
    return rc;
}
