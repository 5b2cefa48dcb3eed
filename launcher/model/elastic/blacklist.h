/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of failures of a slot or a host. Failures add up and are forgotten after a while. At
 * the limit the slot or host belongs on the blacklist, for a cooldown that doubles each time. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ELASTIC_FOR_GOOD INT64_MAX

struct elastic_blacklist_rule {
    int limit; /* 0: nothing is ever blacklisted */
    int64_t decay_ms;
    int64_t cooldown_min_ms, cooldown_max_ms; /* 0: for good */
};

struct elastic_record { /* all zero: no failure */
    int failures;
    int times; /* how often it was blacklisted */
    int64_t last_ms;
    int64_t blacklisted_until_ms; /* 0: it is not; ELASTIC_FOR_GOOD */
};

/* True: the limit is reached. The caller decides whether to blacklist the slot or host. */
bool elastic_record_failure(struct elastic_record *record,
                            const struct elastic_blacklist_rule *rule, int64_t now_ms);
void elastic_record_blacklist(struct elastic_record *record,
                              const struct elastic_blacklist_rule *rule, int64_t now_ms);
/* Takes the last failure back, and the blacklisting that followed from it. */
void elastic_record_excuse(struct elastic_record *record, const struct elastic_blacklist_rule *rule,
                           int64_t now_ms);
/* True: the cooldown has just ended. */
bool elastic_record_expire(struct elastic_record *record, int64_t now_ms);
