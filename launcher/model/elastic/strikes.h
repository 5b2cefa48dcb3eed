/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strikes of a slot or of a host: they add up, are forgotten after a while, and at the limit put
 * their owner aside for a cool-down that doubles each time. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ELASTIC_FOR_GOOD INT64_MAX

struct elastic_strike_rule {
    int limit; /* 0: nothing is ever put aside */
    int64_t decay_ms;
    int64_t cooldown_min_ms, cooldown_max_ms; /* 0: for good */
};

struct elastic_strikes { /* all zero: none */
    int count;
    int times; /* put aside so often */
    int64_t last_ms;
    int64_t aside_until_ms; /* 0: not put aside; ELASTIC_FOR_GOOD */
};

/* True: that was the last one, its owner is to be put aside. */
bool elastic_strikes_add(struct elastic_strikes *strikes, const struct elastic_strike_rule *rule,
                         int64_t now_ms);
void elastic_strikes_put_aside(struct elastic_strikes *strikes,
                               const struct elastic_strike_rule *rule, int64_t now_ms);
/* True: the cool-down is over just now. */
bool elastic_strikes_come_back(struct elastic_strikes *strikes, int64_t now_ms);
