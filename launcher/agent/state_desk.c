/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state_desk.h"

#include <stdlib.h>

#include "agent/rank_stacks.h"
#include "base/mem.h"
#include "io/loop.h"
#include "node/descendants.h"
#include "stacks/native.h"

#define ADVANCE_MS 3
#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */

/* A report whose stacks are being read. */
struct pending {
    struct crew_states states;
    struct rank_stacks *stacks;
    uint32_t round;
    bool native;
    char *remark; /* NULL, or why there are no native frames at all */
};

struct state_desk {
    const struct post *post;
    struct modules *modules;
    struct loop_timer *timer;
    struct held_readers *held;
    struct pending *pending;
    size_t count;
};

static void drop(struct pending *pending)
{
    rank_stacks_destroy(pending->stacks);
    crew_states_destroy(&pending->states);
    free(pending->remark);
}

static void send_report(const struct state_desk *desk, struct pending *pending)
{
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    const struct crew_states *states = &pending->states;
    message.round = pending->round;
    message.native = pending->native;
    message.seats = states->seats;
    message.texts = states->texts.items;
    message.n_seats = message.n_texts = states->texts.count;
    if (pending->remark != NULL) {
        message.remarks = mem_array(1, sizeof(*message.remarks));
        message.remarks[message.n_remarks++] = mem_strdup(pending->remark);
    }
    rank_stacks_fill(pending->stacks, &message);
    post_message(desk->post, FRAME_STATE_REPORT, &message.base);
    rank_stacks_free(&message);
}

static void advance(void *context)
{
    struct state_desk *desk = context;
    size_t kept = 0;
    for (size_t i = 0; i < desk->count; i++) {
        struct pending *pending = &desk->pending[i];
        if (rank_stacks_advance(pending->stacks)) {
            send_report(desk, pending);
            drop(pending);
        } else {
            desk->pending[kept++] = *pending;
        }
    }
    desk->count = kept;
    if (kept > 0)
        loop_timer_set(desk->timer, ADVANCE_MS);
}

struct state_desk *state_desk_create(struct loop *loop, const struct post *post,
                                     struct modules *modules)
{
    struct state_desk *desk = mem_alloc(sizeof(*desk));
    *desk = (struct state_desk){.post = post, .modules = modules, .held = held_readers_create()};
    desk->timer = loop_timer_create(loop, advance, desk);
    return desk;
}

void state_desk_destroy(struct state_desk *desk)
{
    if (desk == NULL)
        return;
    for (size_t i = 0; i < desk->count; i++)
        drop(&desk->pending[i]);
    free(desk->pending);
    loop_timer_destroy(desk->timer);
    held_readers_leave(desk->held);
    free(desk);
}

/* NULL: it cannot be loaded, and `remark` says why. */
static const struct unwind_module *load_module(struct state_desk *desk, char **remark)
{
    struct error err = ERROR_INIT;
    const char *path = modules_find(desk->modules, "hvdrun-unwind.so", &err);
    const struct unwind_module *module = path != NULL ? native_load(path, &err) : NULL;
    if (module == NULL)
        *remark = mem_strdup(err.text);
    return module;
}

void state_desk_ask(struct state_desk *desk, const struct crews *crews,
                    const struct worker_lines *lines, uint32_t round, bool native)
{
    struct pending pending = {.round = round, .native = native};
    const struct unwind_module *module = native ? load_module(desk, &pending.remark) : NULL;
    struct descendants_table *processes = descendants_table_read(ASKED_THREADS);
    crews_states(crews, lines, processes, &pending.states);
    pending.stacks = rank_stacks_create(pending.states.pids, pending.states.texts.count, processes,
                                        desk->held, module);
    descendants_table_destroy(processes);
    desk->pending = mem_resize_array(desk->pending, desk->count + 1, sizeof(*desk->pending));
    desk->pending[desk->count++] = pending;
    loop_timer_set(desk->timer, ADVANCE_MS);
}
