/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the root: stalled tensors, and members that do not answer. */
#include "core/coordinator.h"

#include <stdlib.h>

#include "base/mem.h"

#define WAITS_LOOKED 256 /* entries, each of which is compared with all before it */
#define SECOND_NS ((int64_t)1000000000)

/* A third of the silence that is allowed, so that two answers may be late. */
static int64_t beat(const struct coordinator *coordinator)
{
    return coordinator->config->silence_ns / 3;
}

/* Whether somebody waits for a decision. */
static bool is_active(const struct coordinator *coordinator)
{
    return !coordinator->end_sent &&
           (coordinator->entries.first != NULL || bits_any(&coordinator->joined));
}

static void missing_ranks(const struct coordinator *coordinator, const struct entry *entry,
                          struct bits *missing)
{
    for (int rank = 0; rank < coordinator->config->size; rank++)
        bits_set(missing, (size_t)rank);
    bits_remove(missing, &entry->have);
    bits_remove(missing, &coordinator->joined);
}

/* The global numbers of set ranks. */
static int *globals_new(const struct bits *which, const struct core_config *config, size_t *count)
{
    int *ranks = mem_array((size_t)config->size, sizeof *ranks);
    *count = 0;
    for (size_t rank = bits_next(which, 0); rank != SIZE_MAX; rank = bits_next(which, rank + 1))
        ranks[(*count)++] = config->ranks[rank];
    return ranks;
}

static struct stall stall_new(const struct coordinator *coordinator, const struct entry *entry,
                              const struct bits *missing, int64_t now_ns)
{
    AUTO_BITS struct bits waiting = {0};
    struct stall stall = {.name = mem_strdup(request_name(&entry->request)),
                          .kind = entry->request.kind,
                          .age_ns = now_ns - entry->since_ns};
    bits_copy(&waiting, &entry->have);
    bits_add(&waiting, &coordinator->joined);
    stall.waiting = globals_new(&waiting, coordinator->config, &stall.waiting_count);
    stall.missing = globals_new(missing, coordinator->config, &stall.missing_count);
    return stall;
}

static void warn(const struct coordinator *coordinator, const struct entry *entry, int64_t now_ns,
                 struct actions *actions)
{
    const struct core_config *config = coordinator->config;
    AUTO_BITS struct bits missing = {0};
    AUTO_BUF struct buf text = BUF_INIT(ERROR_TEXT_MAX);
    missing_ranks(coordinator, entry, &missing);
    entry_describe_ranks(&entry->have, config, &text);
    buf_puts(&text, bits_size(&entry->have) == 1 ? " waits for " : " wait for ");
    entry_describe_ranks(&missing, config, &text);
    buf_printf(&text, " in %s '%.200s', for %lld s", kind_text(entry->request.kind),
               request_name(&entry->request), (long long)((now_ns - entry->since_ns) / SECOND_NS));
    struct action action = {.kind = ACTION_STALL, .text = mem_strdup(buf_text(&text))};
    action.stall = stall_new(coordinator, entry, &missing, now_ns);
    actions_add_take(actions, &action);
}

/* Whether an older entry waits with the same ranks. */
static bool is_of_a_group(const struct coordinator *coordinator, const struct entry *entry)
{
    const struct entry *older = coordinator->entries.first;
    while (older != entry && (older->ready != 0 || !bits_equal(&older->have, &entry->have)))
        older = older->next;
    return older != entry;
}

int coordinator_waits(const struct coordinator *coordinator, int64_t now_ns,
                      struct stall stalls[CORE_WAITS_MAX])
{
    int count = 0, looked = 0;
    const struct entry *entry = coordinator->entries.first;
    for (; entry != NULL && count < CORE_WAITS_MAX && looked < WAITS_LOOKED;
         entry = entry->next, looked++) {
        AUTO_BITS struct bits missing = {0};
        if (entry->ready != 0 || is_of_a_group(coordinator, entry))
            continue;
        missing_ranks(coordinator, entry, &missing);
        stalls[count++] = stall_new(coordinator, entry, &missing, now_ns);
    }
    return count;
}

static void watch_stalls(struct coordinator *coordinator, int64_t now_ns, struct actions *actions)
{
    const struct core_config *config = coordinator->config;
    for (struct entry *entry = coordinator->entries.first; entry != NULL && config->warn_ns > 0;
         entry = entry->next) {
        if (now_ns - entry->since_ns < config->warn_ns)
            break; /* those that follow are younger */
        if (now_ns - entry->warned_ns >= config->warn_ns) {
            entry->warned_ns = now_ns;
            warn(coordinator, entry, now_ns, actions);
            coordinator->has_stalled = true;
        }
        if (config->give_up_ns > 0 && now_ns - entry->since_ns >= config->give_up_ns) {
            char *text AUTO_FREE = mem_printf(
                "%s '%.200s' was not complete within %lld s", kind_text(entry->request.kind),
                request_name(&entry->request), (long long)(config->give_up_ns / SECOND_NS));
            coordinator_end(coordinator, HVD_ERR_TIMEOUT, text);
        }
    }
}

static int watch_members(struct coordinator *coordinator, int64_t now_ns, struct error *err)
{
    const struct core_config *config = coordinator->config;
    if (config->silence_ns == 0 || !is_active(coordinator) ||
        now_ns - coordinator->ping_ns < beat(coordinator))
        return 0;
    bool silent = false;
    for (int i = 1; i < config->size; i++) {
        if (!coordinator->seats[i].silent)
            continue;
        silent = true;
        if (now_ns - coordinator->ping_ns >= config->silence_ns)
            return error_set(err, "rank %d does not answer", config->ranks[i]);
    }
    if (silent)
        return 0;
    coordinator->ping = true;
    coordinator->ping_ns = now_ns;
    for (int i = 1; i < config->size; i++)
        coordinator->seats[i].silent = true;
    return 0;
}

int coordinator_watch(struct coordinator *coordinator, int64_t now_ns, struct actions *actions,
                      struct error *err)
{
    watch_stalls(coordinator, now_ns, actions);
    return watch_members(coordinator, now_ns, err);
}

/* The first entry is the oldest: if there was no warning of it, there was none of the others. */
void coordinator_see_progress(struct coordinator *coordinator, struct actions *actions)
{
    const struct entry *oldest = coordinator->entries.first;
    if (!coordinator->has_stalled || (oldest != NULL && oldest->warned_ns != oldest->since_ns))
        return;
    coordinator->has_stalled = false;
    actions_add_take(actions, &(struct action){.kind = ACTION_GOES_ON});
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t coordinator_deadline(const struct coordinator *coordinator)
{
    const struct core_config *config = coordinator->config;
    int64_t deadline = INT64_MAX;
    if (!is_active(coordinator))
        return deadline;
    for (const struct entry *entry = coordinator->entries.first;
         entry != NULL && config->warn_ns > 0; entry = entry->next) {
        deadline = earlier(deadline, entry->warned_ns + config->warn_ns);
        if (config->give_up_ns > 0)
            deadline = earlier(deadline, entry->since_ns + config->give_up_ns);
        if (entry->warned_ns == entry->since_ns)
            break; /* those that follow are younger */
    }
    bool silent = false;
    for (int i = 1; i < config->size; i++)
        silent = silent || coordinator->seats[i].silent;
    if (config->silence_ns > 0 && config->size > 1)
        deadline = earlier(deadline, coordinator->ping_ns +
                                         (silent ? config->silence_ns : beat(coordinator)));
    return deadline;
}

void coordinator_resumed(struct coordinator *coordinator, int64_t now_ns)
{
    coordinator->ping_ns = now_ns;
}
