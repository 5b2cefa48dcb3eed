/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/hosts.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

/* Records of failures. */

bool elastic_record_failure(struct elastic_record *record, const struct elastic_config *config,
                            int64_t now_ms)
{
    if (record->failures > 0 && now_ms - record->last_ms >= config->failure_decay_ms)
        record->failures = 0;
    record->failures++;
    record->last_ms = now_ms;
    return config->failure_limit > 0 && record->failures >= config->failure_limit;
}

static int64_t cooldown_ms(const struct elastic_config *config, int times)
{
    int64_t wait = config->cooldown_min_ms;
    for (int i = 1; i < times && wait < config->cooldown_max_ms; i++)
        wait *= 2;
    return wait < config->cooldown_max_ms ? wait : config->cooldown_max_ms;
}

/* True: the cooldown has just ended. */
static bool expire(struct elastic_record *record, int64_t now_ms)
{
    if (record->blacklisted_until_ms == 0 || record->blacklisted_until_ms == ELASTIC_FOR_GOOD ||
        record->blacklisted_until_ms > now_ms)
        return false;
    record->blacklisted_until_ms = 0;
    return true;
}

/* Takes the last failure back, and the blacklisting that followed from it. */
static void excuse(struct elastic_record *record, const struct elastic_config *config,
                   int64_t now_ms)
{
    if (record->blacklisted_until_ms > now_ms) { /* that took the failures away */
        record->blacklisted_until_ms = 0;
        record->times--;
        record->failures = config->failure_limit;
    }
    record->failures -= record->failures > 0;
}

/* The hosts. */

#define TO(state) (1u << (state))

/* Where a host may go from each state; the table of model/elastic/types.h. */
static const unsigned allowed[ELASTIC_HOST_STATES] = {
    [ELASTIC_HOST_ABSENT] = TO(ELASTIC_HOST_KNOWN),
    [ELASTIC_HOST_KNOWN] =
        TO(ELASTIC_HOST_CALLING) | TO(ELASTIC_HOST_ABSENT) | TO(ELASTIC_HOST_DRAINED),
    [ELASTIC_HOST_CALLING] = TO(ELASTIC_HOST_UP) | TO(ELASTIC_HOST_AWAY) | TO(ELASTIC_HOST_ABSENT) |
                             TO(ELASTIC_HOST_DRAINED),
    [ELASTIC_HOST_UP] = TO(ELASTIC_HOST_AWAY) | TO(ELASTIC_HOST_DRAINING),
    [ELASTIC_HOST_DRAINING] =
        TO(ELASTIC_HOST_AWAY) | TO(ELASTIC_HOST_DRAINED) | TO(ELASTIC_HOST_UP),
    [ELASTIC_HOST_DRAINED] = TO(ELASTIC_HOST_KNOWN) | TO(ELASTIC_HOST_ABSENT),
    [ELASTIC_HOST_AWAY] =
        TO(ELASTIC_HOST_CALLING) | TO(ELASTIC_HOST_ABSENT) | TO(ELASTIC_HOST_DRAINED),
};

void elastic_hosts_destroy(struct elastic_hosts *hosts)
{
    for (int i = 0; i < hosts->count; i++) {
        free(hosts->items[i].slot_records);
        free(hosts->items[i].boot_id);
        free(hosts->items[i].problem);
        free(hosts->items[i].drain_reason);
    }
    free(hosts->items);
    hosts_destroy(&hosts->names);
}

int elastic_hosts_number(const struct elastic_hosts *hosts, const char *name)
{
    const struct host *entry = hosts_find(&hosts->names, name);
    return entry == NULL ? -1 : (int)(entry - hosts->names.items);
}

int elastic_hosts_enter(struct elastic_hosts *hosts, const struct host *entry)
{
    int number = elastic_hosts_number(hosts, entry->name);
    if (number < 0) {
        hosts_add(&hosts->names, entry->name, entry->slots, entry->slots_given);
        number = hosts->count;
        MEM_ADD_ROOM(hosts->items, hosts->count, hosts->room) =
            (struct elastic_host){.place = -1, .first_seat = -1, .drain_deadline_ms = -1};
        hosts->in_state[ELASTIC_HOST_ABSENT]++;
    }
    struct host *own = &hosts->names.items[number];
    own->slots = entry->slots;
    own->slots_given = entry->slots_given;
    host_traits_copy(&own->traits, &entry->traits);
    return number;
}

struct elastic_host *elastic_hosts_at(const struct elastic_hosts *hosts, int number)
{
    return number >= 0 && number < hosts->count ? &hosts->items[number] : NULL;
}

void elastic_hosts_move(struct elastic_hosts *hosts, int number, enum elastic_host_state to)
{
    struct elastic_host *host = &hosts->items[number];
    bool fits = (allowed[host->state] & TO(to)) != 0;
    assert(fits);
    if (!fits)
        return;
    hosts->in_state[host->state]--;
    hosts->in_state[to]++;
    host->state = to;
}

bool elastic_hosts_blacklisted(const struct elastic_host *host)
{
    return host->record.blacklisted_until_ms != 0;
}

int elastic_hosts_promised(const struct elastic_host *host)
{
    bool ok = host->listed && !host->drained && !elastic_hosts_blacklisted(host);
    return ok ? host->slots - host->blacklisted_slots : 0;
}

int elastic_hosts_usable(const struct elastic_host *host)
{
    return host->state == ELASTIC_HOST_UP ? elastic_hosts_promised(host) : 0;
}

bool elastic_hosts_slot_usable(const struct elastic_host *host, int slot)
{
    return elastic_hosts_usable(host) > 0 && slot < host->slots &&
           (slot >= host->slot_room || host->slot_records[slot].blacklisted_until_ms == 0);
}

static void count_blacklisted(struct elastic_host *host)
{
    host->blacklisted_slots = 0;
    for (int s = 0; s < host->slot_room && s < host->slots; s++)
        if (host->slot_records[s].blacklisted_until_ms != 0)
            host->blacklisted_slots++;
}

void elastic_hosts_set_slots(struct elastic_host *host, int slots)
{
    host->slots = slots;
    count_blacklisted(host);
}

static void need_record(struct elastic_host *host, int slot)
{
    if (slot < host->slot_room)
        return;
    host->slot_records =
        mem_resize_array(host->slot_records, (size_t)slot + 1, sizeof(*host->slot_records));
    for (int s = host->slot_room; s <= slot; s++)
        host->slot_records[s] = (struct elastic_record){.failures = 0};
    host->slot_room = slot + 1;
}

bool elastic_hosts_slot_failed(struct elastic_host *host, int slot,
                               const struct elastic_config *config, int64_t now_ms)
{
    need_record(host, slot);
    host->has_crashes = true;
    host->crashed_ms = now_ms;
    return elastic_record_failure(&host->slot_records[slot], config, now_ms);
}

void elastic_hosts_slot_excused(struct elastic_host *host, int slot,
                                const struct elastic_config *config, int64_t now_ms)
{
    if (slot < 0 || slot >= host->slot_room)
        return;
    excuse(&host->slot_records[slot], config, now_ms);
    count_blacklisted(host);
    host->has_crashes = false;
    for (int s = 0; s < host->slot_room; s++)
        host->has_crashes = host->has_crashes || host->slot_records[s].failures > 0;
}

static void due_at(struct elastic_hosts *hosts, int64_t due_ms)
{
    if (due_ms < hosts->due_ms)
        hosts->due_ms = due_ms;
}

void elastic_hosts_blacklist(struct elastic_hosts *hosts, int number, int slot,
                             const struct elastic_config *config, int64_t now_ms)
{
    struct elastic_host *host = &hosts->items[number];
    if (slot >= 0)
        need_record(host, slot);
    struct elastic_record *record = slot >= 0 ? &host->slot_records[slot] : &host->record;
    bool for_good = config->cooldown_min_ms <= 0 || config->cooldown_max_ms <= 0;
    record->failures = 0;
    record->times++;
    record->blacklisted_until_ms =
        for_good ? ELASTIC_FOR_GOOD : now_ms + cooldown_ms(config, record->times);
    count_blacklisted(host);
    due_at(hosts, record->blacklisted_until_ms);
}

bool elastic_hosts_has_crashed(const struct elastic_host *host, const struct elastic_config *config,
                               int64_t now_ms)
{
    return host->has_crashes && now_ms - host->crashed_ms < config->failure_decay_ms;
}

void elastic_hosts_clear_records(struct elastic_host *host)
{
    free(host->slot_records);
    host->slot_records = NULL;
    host->slot_room = 0;
    host->blacklisted_slots = 0;
    host->record = (struct elastic_record){.failures = 0};
    host->has_crashes = host->has_hung = false;
    host->prepare_failed = false;
    elastic_hosts_undrain(host);
}

bool elastic_hosts_end_cooldowns(struct elastic_host *host, int64_t now_ms)
{
    bool any = expire(&host->record, now_ms);
    if (any)
        host->prepare_failed = false;
    for (int s = 0; s < host->slot_room; s++)
        if (expire(&host->slot_records[s], now_ms))
            any = true;
    count_blacklisted(host);
    return any;
}

void elastic_hosts_back_off(struct elastic_hosts *hosts, int number, int64_t min_ms, int64_t max_ms,
                            int64_t now_ms)
{
    struct elastic_host *host = &hosts->items[number];
    int64_t delay = host->delay_ms > 0 ? 2 * host->delay_ms : min_ms;
    host->delay_ms = delay < max_ms ? delay : max_ms;
    host->call_due_ms = now_ms + host->delay_ms;
    due_at(hosts, host->call_due_ms);
}

void elastic_hosts_drain(struct elastic_hosts *hosts, int number, const char *reason,
                         int64_t deadline_ms)
{
    struct elastic_host *host = &hosts->items[number];
    host->drained = true;
    host->relisted = false;
    if (reason != NULL)
        mem_replace(&host->drain_reason, reason);
    if (deadline_ms < 0 || deadline_ms == host->drain_deadline_ms)
        return;
    host->expired = false;
    host->drain_deadline_ms = deadline_ms;
    due_at(hosts, deadline_ms);
}

void elastic_hosts_undrain(struct elastic_host *host)
{
    host->drained = host->relisted = host->expired = false;
    host->drain_deadline_ms = -1;
    mem_replace(&host->drain_reason, NULL);
}

void elastic_hosts_called(struct elastic_hosts *hosts, int number, int64_t now_ms)
{
    hosts->items[number].called_ms = now_ms;
    due_at(hosts, now_ms + ELASTIC_SLOW_CALL_MS);
}

void elastic_hosts_find_due(struct elastic_hosts *hosts, int64_t now_ms)
{
    hosts->due_ms = INT64_MAX;
    for (int i = 0; i < hosts->count; i++) {
        const struct elastic_host *host = &hosts->items[i];
        /* a call that is due and not made is one that is not needed now */
        if (host->state == ELASTIC_HOST_AWAY && host->call_due_ms > now_ms)
            due_at(hosts, host->call_due_ms);
        if (host->state == ELASTIC_HOST_CALLING && host->called_ms + ELASTIC_SLOW_CALL_MS > now_ms)
            due_at(hosts, host->called_ms + ELASTIC_SLOW_CALL_MS);
        if (host->drain_deadline_ms > now_ms)
            due_at(hosts, host->drain_deadline_ms);
        if (host->record.blacklisted_until_ms > 0)
            due_at(hosts, host->record.blacklisted_until_ms);
        for (int s = 0; s < host->slot_room; s++)
            if (host->slot_records[s].blacklisted_until_ms > 0)
                due_at(hosts, host->slot_records[s].blacklisted_until_ms);
    }
}
