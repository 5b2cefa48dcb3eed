/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/strikes.h"

bool elastic_strikes_add(struct elastic_strikes *strikes, const struct elastic_strike_rule *rule,
                         int64_t now_ms)
{
    if (strikes->count > 0 && now_ms - strikes->last_ms >= rule->decay_ms)
        strikes->count = 0;
    strikes->count++;
    strikes->last_ms = now_ms;
    return rule->limit > 0 && strikes->count >= rule->limit;
}

static int64_t cooldown_ms(const struct elastic_strike_rule *rule, int times)
{
    int64_t wait = rule->cooldown_min_ms;
    for (int i = 1; i < times && wait < rule->cooldown_max_ms; i++)
        wait *= 2;
    return wait < rule->cooldown_max_ms ? wait : rule->cooldown_max_ms;
}

void elastic_strikes_put_aside(struct elastic_strikes *strikes,
                               const struct elastic_strike_rule *rule, int64_t now_ms)
{
    strikes->count = 0;
    strikes->times++;
    if (rule->cooldown_min_ms <= 0 || rule->cooldown_max_ms <= 0)
        strikes->aside_until_ms = ELASTIC_FOR_GOOD;
    else
        strikes->aside_until_ms = now_ms + cooldown_ms(rule, strikes->times);
}

bool elastic_strikes_come_back(struct elastic_strikes *strikes, int64_t now_ms)
{
    if (strikes->aside_until_ms == 0 || strikes->aside_until_ms == ELASTIC_FOR_GOOD ||
        strikes->aside_until_ms > now_ms)
        return false;
    strikes->aside_until_ms = 0;
    return true;
}
