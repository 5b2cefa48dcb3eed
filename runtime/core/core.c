/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/coordinator.h"
#include "core/member.h"

struct core {
    struct core_config config;
    struct member member;
    struct coordinator *root; /* NULL: another rank is the root */
    struct actions actions;
    bool lost, closed;
};

/* ---- What the decisions of the root do to a member, and which actions follow ----------------- */

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

/* All that is pending fails, and all that comes later too. */
static void decide_end(struct member *member, enum hvd_status status, const char *text,
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

/* A decision of the root. -1: the root breaks the rules; the error says how. */
static int decide_apply(struct member *member, const void *bytes, size_t length, int64_t now_ns,
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

/* ---- The core -------------------------------------------------------------------------------- */

struct core *core_create(const struct core_config *config, int64_t now_ns)
{
    struct core *core = mem_alloc(sizeof *core);
    core->config = *config;
    member_init(&core->member, &core->config, now_ns);
    if (config->rank == 0) {
        core->root = mem_alloc(sizeof *core->root);
        coordinator_init(core->root, &core->config, now_ns);
    }
    return core;
}

void core_destroy(struct core *core)
{
    if (core == NULL)
        return;
    member_destroy(&core->member);
    if (core->root != NULL)
        coordinator_destroy(core->root);
    free(core->root);
    actions_destroy(&core->actions);
    free(core);
}

enum hvd_status core_submit(struct core *core, struct request *request, void *token, int64_t now_ns,
                            struct error *err)
{
    return member_submit(&core->member, request, token, now_ns, err);
}

enum hvd_status core_check(const struct core *core, const struct request *request,
                           struct error *err)
{
    return member_check(&core->member, request, err);
}

void core_hurry(struct core *core, const void *token)
{
    member_hurry(&core->member, token);
}

void core_leave(struct core *core, enum hvd_status why)
{
    member_leave(&core->member, why == HVD_ERR_UNKNOWN_SET ? REPORT_REMOVES : REPORT_SHUTS_DOWN);
}

int core_receive(struct core *core, int from, const void *bytes, size_t length, int64_t now_ns,
                 struct error *err)
{
    if (core->lost)
        return 0;
    if (core->root != NULL)
        return coordinator_report(core->root, from, bytes, length, now_ns, err);
    if (from != 0)
        return error_set(err, "rank %d sent a message, and is not the root",
                         core->config.ranks[from]);
    return decide_apply(&core->member, bytes, length, now_ns, &core->actions, err);
}

static void send(struct core *core, int to, struct buf *message)
{
    size_t length = message->length;
    if (core->config.size > 1)
        actions_add_take(&core->actions, &(struct action){.kind = ACTION_SEND,
                                                          .to = to,
                                                          .bytes = buf_take(message),
                                                          .length = length});
}

static int report(struct core *core, int64_t now_ns, struct error *err)
{
    AUTO_BUF struct buf message = BUF_INIT(CORE_MESSAGE_MAX);
    member_report(&core->member, now_ns, &message);
    if (core->root != NULL)
        return coordinator_report(core->root, 0, buf_text(&message), message.length, now_ns, err);
    send(core, 0, &message);
    return 0;
}

/* The root's own member gets its decisions without a network. The end is decided only when all
 * actions have been carried out: no rank closes its connections while the root is in an operation.
 */
static int decide(struct core *core, int64_t now_ns, struct error *err)
{
    AUTO_BUF struct buf message = BUF_INIT(CORE_MESSAGE_MAX);
    int rc = 0;
    while (rc == 0 && coordinator_decide(core->root, now_ns, core->actions.count == 0, &message)) {
        AUTO_BUF struct buf own = BUF_INIT(CORE_MESSAGE_MAX);
        buf_append(&own, buf_text(&message), message.length);
        send(core, TO_ALL, &message);
        buf_clear(&message);
        rc = decide_apply(&core->member, buf_text(&own), own.length, now_ns, &core->actions, err);
    }
    return rc;
}

static int watch_root(const struct core *core, int64_t now_ns, struct error *err)
{
    const struct core_config *config = &core->config;
    if (core->root != NULL || config->silence_ns == 0 || !member_waits(&core->member) ||
        now_ns - core->member.heard_ns < config->silence_ns)
        return 0;
    return error_set(err, "rank %d does not answer", config->ranks[0]);
}

int core_turn(struct core *core, int64_t now_ns, struct error *err)
{
    int rc = 0;
    if (core->lost)
        return 0;
    while (rc == 0 && member_is_due(&core->member, now_ns)) {
        rc = report(core, now_ns, err);
        if (core->root == NULL || rc != 0)
            break;
        rc = decide(core, now_ns, err); /* may make the member due again */
    }
    if (rc == 0)
        rc = watch_root(core, now_ns, err);
    if (rc != 0 || core->root == NULL)
        return rc;
    rc = coordinator_watch(core->root, now_ns, &core->actions, err);
    if (rc == 0)
        rc = decide(core, now_ns, err);
    coordinator_see_progress(core->root, &core->actions);
    if (rc == 0 && !core->closed && coordinator_all_left(core->root)) {
        core->closed = true;
        actions_add_take(&core->actions, &(struct action){.kind = ACTION_CLOSE});
    }
    return rc;
}

int64_t core_deadline(const struct core *core)
{
    const struct core_config *config = &core->config;
    if (core->lost)
        return INT64_MAX;
    if (member_is_due(&core->member, INT64_MIN) ||
        (core->root != NULL && coordinator_ends(core->root)))
        return INT64_MIN;
    int64_t deadline = member_deadline(&core->member), other = INT64_MAX;
    if (core->root != NULL)
        other = coordinator_deadline(core->root);
    else if (config->silence_ns > 0 && member_waits(&core->member))
        other = core->member.heard_ns + config->silence_ns;
    return other < deadline ? other : deadline;
}

void core_tune(struct core *core, const struct tune_point *point)
{
    core->config.threshold = point->threshold;
    core->config.cycle_ns = point->cycle_ns;
}

void core_resumed(struct core *core, int64_t now_ns)
{
    core->member.heard_ns = now_ns;
    if (core->root != NULL)
        coordinator_resumed(core->root, now_ns);
}

void core_lost(struct core *core, enum hvd_status status, const char *text)
{
    if (core->root != NULL && !core->lost && core->member.status == HVD_OK) {
        AUTO_BUF struct buf message = BUF_INIT(CORE_MESSAGE_MAX);
        char *copy AUTO_FREE = mem_strndup(text, ERROR_TEXT_MAX - 1);
        item_write(&(struct item){.kind = ITEM_END, .status = status, .text = copy}, &message);
        send(core, TO_ALL, &message);
    }
    decide_end(&core->member, status, text, &core->actions);
    core->lost = true;
}

int core_waits(const struct core *core, int64_t now_ns, struct stall stalls[CORE_WAITS_MAX])
{
    return core->root == NULL || core->lost ? 0 : coordinator_waits(core->root, now_ns, stalls);
}

bool core_has_ended(const struct core *core)
{
    return core->member.status != HVD_OK;
}

bool core_take(struct core *core, struct action *action)
{
    return actions_take(&core->actions, action);
}
