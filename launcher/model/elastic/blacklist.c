/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/blacklist.h"

bool elastic_record_failure(struct elastic_record *record,
                            const struct elastic_blacklist_rule *rule, int64_t now_ms)
{
    if (record->failures > 0 && now_ms - record->last_ms >= rule->decay_ms)
        record->failures = 0;
    record->failures++;
    record->last_ms = now_ms;
    return rule->limit > 0 && record->failures >= rule->limit;
}

static int64_t cooldown_ms(const struct elastic_blacklist_rule *rule, int times)
{
    int64_t wait = rule->cooldown_min_ms;
    for (int i = 1; i < times && wait < rule->cooldown_max_ms; i++)
        wait *= 2;
    return wait < rule->cooldown_max_ms ? wait : rule->cooldown_max_ms;
}

void elastic_record_blacklist(struct elastic_record *record,
                              const struct elastic_blacklist_rule *rule, int64_t now_ms)
{
    record->failures = 0;
    record->times++;
    if (rule->cooldown_min_ms <= 0 || rule->cooldown_max_ms <= 0)
        record->blacklisted_until_ms = ELASTIC_FOR_GOOD;
    else
        record->blacklisted_until_ms = now_ms + cooldown_ms(rule, record->times);
}

bool elastic_record_expire(struct elastic_record *record, int64_t now_ms)
{
    if (record->blacklisted_until_ms == 0 || record->blacklisted_until_ms == ELASTIC_FOR_GOOD ||
        record->blacklisted_until_ms > now_ms)
        return false;
    record->blacklisted_until_ms = 0;
    return true;
}

void elastic_record_excuse(struct elastic_record *record, const struct elastic_blacklist_rule *rule,
                           int64_t now_ms)
{
    if (record->blacklisted_until_ms > now_ms) { /* that took the failures away */
        record->blacklisted_until_ms = 0;
        record->times--;
        record->failures = rule->limit;
    }
    record->failures -= record->failures > 0;
}
