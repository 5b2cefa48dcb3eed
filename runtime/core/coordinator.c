/* SPDX-License-Identifier: Apache-2.0 */
#include "core/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/request.h"

void coordinator_init(struct coordinator *coordinator, const struct core_config *config,
                      int64_t now_ns)
{
    *coordinator = (struct coordinator){
        .config = config,
        .seats = mem_array((size_t)config->size, sizeof *coordinator->seats),
        .last_joined = -1,
        .ping_ns = now_ns,
    };
    numbers_init(&coordinator->numbers, config->capacity);
    entries_init(&coordinator->entries, config->capacity);
    tuner_init(&coordinator->tuner, &config->tuner,
               &(struct tune_point){config->threshold, config->cycle_ns});
}

void coordinator_destroy(struct coordinator *coordinator)
{
    entries_destroy(&coordinator->entries);
    numbers_destroy(&coordinator->numbers);
    free(coordinator->seats);
    free(coordinator->ready);
    free(coordinator->end_text);
    bits_destroy(&coordinator->joined);
    step_plan_destroy(&coordinator->plan);
    learner_destroy(&coordinator->learner);
    tuner_destroy(&coordinator->tuner);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void trace(const struct coordinator *coordinator, enum trace_kind kind,
                  const struct entry *entry, int rank, int64_t now_ns)
{
    const struct request *request = entry == NULL ? NULL : &entry->request;
    if (!trace_is_on(coordinator->config->trace))
        return;
    trace_send(coordinator->config->trace,
               &(struct trace_event){.kind = kind,
                                     .set = coordinator->config->set,
                                     .tensor = request == NULL ? NULL : request_name(request),
                                     .what = request == NULL ? NULL : kind_text(request->kind),
                                     .rank = rank,
                                     .time_ns = now_ns});
}

static void check_ready(struct coordinator *coordinator, struct entry *entry)
{
    AUTO_BITS struct bits there = {0};
    if (entry->ready != 0)
        return;
    if (bits_any(&coordinator->joined)) {
        bits_copy(&there, &coordinator->joined);
        bits_add(&there, &entry->have);
    }
    if (bits_size(bits_any(&there) ? &there : &entry->have) < (size_t)coordinator->config->size)
        return;
    coordinator->ready = mem_one_more(coordinator->ready, coordinator->ready_count,
                                      &coordinator->ready_room, sizeof(struct entry *));
    coordinator->ready[coordinator->ready_count++] = entry;
    entry->ready = ++coordinator->ready_number;
    coordinator->has_priorities = coordinator->has_priorities || entry->request.priority != 0;
}

/* `id` NO_ID: a whole request. Otherwise the request is that of the cache. */
static int submitted(struct coordinator *coordinator, int from, size_t id,
                     const struct request *request, int64_t now_ns, struct error *err)
{
    size_t number = id != NO_ID ? id : numbers_find(&coordinator->numbers, request->key);
    struct entry *entry = entries_find(&coordinator->entries, number, request->key);
    if (bits_test(&coordinator->joined, (size_t)from))
        return error_set(err, "rank %d submitted '%s' after it had joined",
                         coordinator->config->ranks[from], request_name(request));
    if (entry == NULL) {
        entry = entries_add(&coordinator->entries, number, request, id != NO_ID, now_ns);
        trace(coordinator, TRACE_NEGOTIATE_BEGIN, entry, -1, now_ns);
    }
    if (bits_test(&entry->have, (size_t)from))
        return error_set(err, "rank %d submitted '%s' twice", coordinator->config->ranks[from],
                         request_name(request));
    entry_add(entry, from, request);
    trace(coordinator, TRACE_RANK_READY, entry, from, now_ns);
    check_ready(coordinator, entry);
    return 0;
}

static int joins(struct coordinator *coordinator, int from, struct error *err)
{
    if (bits_test(&coordinator->joined, (size_t)from))
        return error_set(err, "rank %d joined twice", coordinator->config->ranks[from]);
    bits_set(&coordinator->joined, (size_t)from);
    coordinator->last_joined = coordinator->config->ranks[from];
    for (struct entry *entry = coordinator->entries.first; entry != NULL; entry = entry->next)
        check_ready(coordinator, entry);
    return 0;
}

/* A member that reports a part of a group does not get along with the plan. */
static void check_plan(struct coordinator *coordinator, const struct bits *ids)
{
    if (!bits_meet(&coordinator->plan.all, ids))
        return;
    for (size_t i = 0; i < coordinator->plan.count; i++) {
        const struct bits *group = &coordinator->plan.groups[i];
        if (bits_meet(group, ids) && !bits_contain(ids, group))
            coordinator->drop_plan = true;
    }
}

static void leaves(struct coordinator *coordinator, int from, unsigned flags)
{
    if (flags & REPORT_LEFT)
        coordinator->seats[from].left = true;
    if (flags & REPORT_SHUTS_DOWN) {
        char *text AUTO_FREE =
            mem_printf("rank %d has shut the library down", coordinator->config->ranks[from]);
        coordinator_end(coordinator, HVD_ERR_SHUT_DOWN, text);
    }
    if (flags & REPORT_REMOVES)
        coordinator_end(coordinator, HVD_ERR_UNKNOWN_SET, "the process set was removed");
}

static int process(struct coordinator *coordinator, int from, const struct report *report,
                   int64_t now_ns, struct error *err)
{
    struct seat *seat = &coordinator->seats[from];
    if (report->seen < seat->seen || report->seen > coordinator->decisions)
        return error_set(err, "rank %d says that it has seen %llu decisions",
                         coordinator->config->ranks[from], (unsigned long long)report->seen);
    seat->seen = report->seen;
    seat->silent = false;
    leaves(coordinator, from, report->flags);
    if (coordinator->end_sent)
        return 0;
    check_plan(coordinator, &report->ids);
    for (size_t id = bits_next(&report->ids, 0); id != SIZE_MAX;
         id = bits_next(&report->ids, id + 1)) {
        const struct request *request = cache_get(&coordinator->numbers.cache, id);
        if (request == NULL)
            return error_set(err, "rank %d submitted number %zu, which is not in the cache",
                             coordinator->config->ranks[from], id);
        if (submitted(coordinator, from, id, request, now_ns, err) != 0)
            return -1;
    }
    int rc = 0;
    for (size_t i = 0; i < report->count && rc == 0; i++)
        rc = report->requests[i].kind == KIND_JOIN
                 ? joins(coordinator, from, err)
                 : submitted(coordinator, from, NO_ID, &report->requests[i], now_ns, err);
    return rc;
}

int coordinator_report(struct coordinator *coordinator, int from, const void *bytes, size_t length,
                       int64_t now_ns, struct error *err)
{
    const struct message_limits limits = config_limits(coordinator->config);
    struct report report;
    if (report_read(bytes, length, &limits, &report) != 0)
        return error_set(err, "a message of rank %d is broken", coordinator->config->ranks[from]);
    int rc = process(coordinator, from, &report, now_ns, err);
    report_destroy(&report);
    return rc;
}

void coordinator_end(struct coordinator *coordinator, enum hvd_status status, const char *text)
{
    if (coordinator->end != HVD_OK)
        return;
    coordinator->end = status;
    coordinator->end_text = mem_strdup(text);
}

bool coordinator_ends(const struct coordinator *coordinator)
{
    return coordinator->end != HVD_OK && !coordinator->end_sent;
}

bool coordinator_all_left(const struct coordinator *coordinator)
{
    for (int i = 0; i < coordinator->config->size; i++)
        if (!coordinator->seats[i].left)
            return false;
    return true;
}

/* ---- Decisions ------------------------------------------------------------------------------- */

/* Writes an item for the entry if it is an error. */
static bool decide_error(const struct coordinator *coordinator, const struct entry *entry,
                         struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(CORE_MESSAGE_MAX);
    entry_describe_error(entry, &coordinator->joined, coordinator->config, &text);
    buf_truncate(&text, ERROR_TEXT_MAX - 1);
    if (text.length == 0)
        return false;
    item_write(&(struct item){.kind = ITEM_ERROR,
                              .key = entry->request.key,
                              .status = HVD_ERR_MISMATCH,
                              .text = (char *)buf_text(&text)},
               out);
    return true;
}

/* The ready tensors of one group, as a list of places in `entries`. */
struct group {
    size_t first, last; /* SIZE_MAX: none */
};

/* The learner sees a group that runs. What it has learned is news for the members. */
static void decide_plan(struct coordinator *coordinator, const struct bits *ids, struct buf *out)
{
    struct step_plan *plan = &coordinator->plan;
    size_t learned = learner_run(&coordinator->learner, ids, plan);
    for (size_t i = plan->count - learned; i < plan->count; i++)
        item_write(&(struct item){.kind = ITEM_GROUP, .ids = plan->groups[i]}, out);
}

/* Writes the item of a group, and lets the learner see it. */
static void decide_group(struct coordinator *coordinator, struct entry *const *entries,
                         const struct group *group, const size_t *next, struct buf *out)
{
    struct item item = {.kind = ITEM_RUN};
    size_t room = 0;
    for (size_t i = group->first; i != SIZE_MAX; i = next[i]) {
        struct entry *entry = entries[i];
        const struct request *request = &entry->request;
        if (request->kind == KIND_ALLREDUCE)
            tuner_count(&coordinator->tuner, request->key, request_bytes(request));
        if (numbers_known(&coordinator->numbers, entry->id, request, coordinator->decisions)) {
            bits_set(&item.ids, entry->id);
            continue;
        }
        entry_own(entry);
        item.parts = mem_one_more(item.parts, item.count, &room, sizeof *item.parts);
        size_t id = numbers_assign(&coordinator->numbers, request, coordinator->decisions);
        item.parts[item.count++] = (struct item_part){*request, id};
    }
    item_write(&item, out);
    if (item.count == 0)
        decide_plan(coordinator, &item.ids, out);
    free(item.parts);
    bits_destroy(&item.ids);
}

static void decide_groups(struct coordinator *coordinator, struct entry *const *entries,
                          size_t count, struct buf *out)
{
    const struct request **requests AUTO_FREE = mem_array(count, sizeof(struct request *));
    size_t *numbers AUTO_FREE = mem_array(count, sizeof *numbers);
    size_t *next AUTO_FREE = mem_array(count, sizeof *next);
    for (size_t i = 0; i < count; i++)
        requests[i] = &entries[i]->request;
    const struct core_config *config = coordinator->config;
    size_t end = fusion_groups(requests, count, config->size, config->threshold, numbers);
    struct group *groups AUTO_FREE = mem_array(end, sizeof *groups);
    for (size_t number = 0; number < end; number++)
        groups[number] = (struct group){SIZE_MAX, SIZE_MAX};
    for (size_t i = 0; i < count; i++) {
        struct group *group = &groups[numbers[i]];
        if (group->first == SIZE_MAX)
            group->first = i;
        else
            next[group->last] = i;
        group->last = i;
        next[i] = SIZE_MAX;
    }
    for (size_t number = 0; number < end; number++)
        decide_group(coordinator, entries, &groups[number], next, out);
}

static int compare_ready(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    if (x->request.priority != y->request.priority)
        return x->request.priority > y->request.priority ? -1 : 1;
    return x->ready < y->ready ? -1 : 1;
}

static void sort_ready(struct coordinator *coordinator)
{
    if (!coordinator->has_priorities)
        return;
    qsort(coordinator->ready, coordinator->ready_count, sizeof(struct entry *), compare_ready);
    coordinator->has_priorities = coordinator->ready_count > CORE_BATCH_MAX;
}

static void decide_ready(struct coordinator *coordinator, int64_t now_ns, struct buf *out)
{
    size_t count = 0, all = coordinator->ready_count;
    size_t end = all < CORE_BATCH_MAX ? all : CORE_BATCH_MAX;
    struct entry **entries = coordinator->ready;
    sort_ready(coordinator);
    for (size_t i = 0; i < end; i++) {
        trace(coordinator, TRACE_NEGOTIATE_END, entries[i], -1, now_ns);
        if (decide_error(coordinator, entries[i], out))
            entries_remove(&coordinator->entries, entries[i]);
        else
            entries[count++] = entries[i];
    }
    decide_groups(coordinator, entries, count, out);
    for (size_t i = 0; i < count; i++)
        entries_remove(&coordinator->entries, entries[i]);
    coordinator->ready_count = all - end;
    if (all > end)
        memmove(entries, entries + end, (all - end) * sizeof *entries);
}

static void drop_plan(struct coordinator *coordinator, struct buf *out)
{
    coordinator->drop_plan = false;
    step_plan_destroy(&coordinator->plan);
    learner_destroy(&coordinator->learner);
    item_write(&(struct item){.kind = ITEM_NO_PLAN}, out);
}

/* Groups with the old threshold are not worth keeping. */
static void decide_tuning(struct coordinator *coordinator, int64_t now_ns, struct buf *out)
{
    struct item item = {.kind = ITEM_TUNE};
    if (!tuner_turn(&coordinator->tuner, now_ns, &item.tuning))
        return;
    item_write(&item, out);
    drop_plan(coordinator, out);
}

static void decide_cache(struct coordinator *coordinator, struct buf *out)
{
    struct numbers *numbers = &coordinator->numbers;
    if (!numbers_make_room(numbers, coordinator->decisions, &coordinator->entries))
        return;
    drop_plan(coordinator, out);
    item_write(&(struct item){.kind = ITEM_FORGET, .ids = numbers->leaving}, out);
}

static void reclaim(struct coordinator *coordinator)
{
    uint64_t seen = UINT64_MAX;
    for (int i = 0; i < coordinator->config->size; i++)
        seen = coordinator->seats[i].seen < seen ? coordinator->seats[i].seen : seen;
    if (bits_any(&coordinator->numbers.leaving))
        numbers_reclaim(&coordinator->numbers, seen, &coordinator->entries);
}

static void decide_join(struct coordinator *coordinator, struct buf *out)
{
    if (bits_size(&coordinator->joined) < (size_t)coordinator->config->size)
        return;
    item_write(&(struct item){.kind = ITEM_JOINED, .rank = coordinator->last_joined}, out);
    bits_clear(&coordinator->joined);
}

bool coordinator_decide(struct coordinator *coordinator, int64_t now_ns, bool may_end,
                        struct buf *out)
{
    size_t before = out->length;
    if (coordinator->end_sent)
        return false;
    coordinator->decisions++;
    reclaim(coordinator);
    if (coordinator->drop_plan)
        drop_plan(coordinator, out);
    decide_ready(coordinator, now_ns, out);
    decide_join(coordinator, out);
    if (out->length > before)
        decide_tuning(coordinator, now_ns, out);
    decide_cache(coordinator, out);
    if (coordinator->ping)
        item_write(&(struct item){.kind = ITEM_PING}, out);
    coordinator->ping = false;
    if (coordinator_ends(coordinator) && may_end && out->length == before) {
        item_write(&(struct item){.kind = ITEM_END,
                                  .status = coordinator->end,
                                  .text = coordinator->end_text},
                   out);
        coordinator->end_sent = true;
    }
    if (out->length == before) {
        coordinator->decisions--;
        return false;
    }
    trace(coordinator, TRACE_CYCLE, NULL, -1, now_ns);
    return true;
}
