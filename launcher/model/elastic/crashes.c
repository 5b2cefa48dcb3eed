/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/crashes.h"

#include "model/elastic/verdict.h"

bool elastic_crashes_everywhere(const struct elastic *e)
{
    int crashed = 0;
    for (int i = 0; i < e->hosts.count; i++) {
        const struct elastic_host *host = &e->hosts.items[i];
        bool has_crashed = elastic_hosts_has_crashed(host, &e->blacklist_rule, e->now_ms);
        if (elastic_hosts_usable(host) > 0 && !has_crashed)
            return false;
        crashed += has_crashed;
    }
    return crashed > 1;
}

/* Another usable host on which the program has not crashed lately. */
static bool elsewhere_it_runs(const struct elastic *e, int than)
{
    for (int i = 0; i < e->hosts.count; i++) {
        const struct elastic_host *host = &e->hosts.items[i];
        if (i != than && elastic_hosts_usable(host) > 0 &&
            !elastic_hosts_has_crashed(host, &e->blacklist_rule, e->now_ms))
            return true;
    }
    return false;
}

/* Enough to go on would remain. */
static bool can_spare_a_slot(const struct elastic *e)
{
    int slots = 0;
    for (int i = 0; i < e->hosts.count; i++)
        slots += elastic_hosts_promised(&e->hosts.items[i]);
    return slots > e->config.min_np;
}

bool elastic_crashes_count(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_host *host = &e->hosts.items[failure->host];
    if (!elastic_hosts_slot_failed(host, failure->slot, &e->blacklist_rule, e->now_ms))
        return true;
    bool elsewhere = elsewhere_it_runs(e, failure->host);
    if (e->change.mode == ELASTIC_RESTART && e->config.max_restarts >= 0 &&
        !(elsewhere && can_spare_a_slot(e)))
        return true; /* the remaining restarts decide */
    if (!elsewhere) {
        elastic_verdict_give(e, ELASTIC_END_FAULT, failure,
                             "the program crashes on every host; the last crash: %s",
                             failure->text);
        return false;
    }
    elastic_hosts_blacklist_slot(&e->hosts, failure->host, failure->slot, &e->blacklist_rule,
                                 e->now_ms);
    elastic_say_slot_blacklisted(e, failure->host, failure->slot);
    e->call_again = true;
    return true;
}
