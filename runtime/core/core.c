/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/coordinator.h"
#include "core/decide.h"

struct core {
    struct core_config config;
    struct member member;
    struct coordinator *root; /* NULL: another rank is the root */
    struct actions actions;
    bool lost, closed;
};

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
