/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random source: splitmix64. Every host and every worker of the simulated world draws from a
 * stream of its own. So a schedule without one of its faults differs only in what that fault
 * touched, and in little else. This makes shrinking work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline struct rng rng_stream(uint64_t seed, uint64_t stream)
{
    struct rng rng = {.state = seed ^ (stream * 0xd1342543de82ef95u)};
    rng.state = rng_next(&rng) + stream;
    return rng;
}

/* 0 .. count - 1 */
static inline int rng_below(struct rng *rng, int count)
{
    return (int)((rng_next(rng) >> 33) % (uint64_t)count);
}

/* Both ends are possible. */
static inline int64_t rng_between(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)((rng_next(rng) >> 1) % (uint64_t)(high - low + 1));
}

static inline bool rng_chance(struct rng *rng, int percent)
{
    return rng_below(rng, 100) < percent;
}
