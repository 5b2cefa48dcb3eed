/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sampler.h"

#include <stdlib.h>

/* SplitMix64, by Sebastiano Vigna (public domain): a good 64-bit sequence from any seed. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* From 0 to bound - 1, each equally likely: the few values that would favour some are drawn again.
 */
static uint64_t below(uint64_t *state, uint64_t bound)
{
    uint64_t unfair = -bound % bound, value;
    do
        value = next_random(state);
    while (value < unfair);
    return value % bound;
}

/* Fisher and Yates */
static void make_order(struct sampler *sampler)
{
    if (!sampler->shuffle)
        return;
    uint64_t state = sampler->seed + (uint64_t)sampler->epoch;
    for (int64_t i = 0; i < sampler->examples; i++)
        sampler->order[i] = i;
    for (int64_t i = sampler->examples - 1; i > 0; i--) {
        int64_t other = (int64_t)below(&state, (uint64_t)i + 1), kept = sampler->order[i];
        sampler->order[i] = sampler->order[other];
        sampler->order[other] = kept;
    }
}

static void make_share(struct sampler *sampler)
{
    int64_t left = sampler->examples - sampler->done;
    sampler->base = sampler->done;
    sampler->count = left / sampler->size + (left % sampler->size != 0);
}

static int check_place(int32_t rank, int32_t size, struct error *err)
{
    if (size < 1 || rank < 0 || rank >= size)
        return error_set(err, "rank %d of %d is not a place for a sampler", rank, size);
    return 0;
}

int sampler_init(struct sampler *sampler, int64_t examples, bool shuffle, uint64_t seed,
                 int32_t rank, int32_t size, struct error *err)
{
    *sampler = (struct sampler){.examples = 0};
    if (examples < 0 || examples > INT64_MAX / 16)
        return error_set(err, "a sampler cannot have %lld examples", (long long)examples);
    if (check_place(rank, size, err) < 0)
        return -1;
    *sampler = (struct sampler){
        .examples = examples, .shuffle = shuffle, .seed = seed, .rank = rank, .size = size};
    if (shuffle)
        sampler->order = calloc((size_t)examples + 1, sizeof(*sampler->order));
    if (shuffle && sampler->order == NULL)
        return error_set(err, "there is not enough memory for the order of %lld examples",
                         (long long)examples);
    sampler_set_epoch(sampler, 0);
    return 0;
}

void sampler_destroy(struct sampler *sampler)
{
    free(sampler->order);
    *sampler = (struct sampler){.examples = 0};
}

void sampler_set_epoch(struct sampler *sampler, int64_t epoch)
{
    sampler->epoch = epoch;
    sampler->done = 0;
    make_order(sampler);
    make_share(sampler);
}

int sampler_resize(struct sampler *sampler, int64_t epoch, int64_t done, int32_t rank, int32_t size,
                   struct error *err)
{
    if (check_place(rank, size, err) < 0)
        return -1;
    if (done < 0)
        return error_set(err, "a sampler cannot have processed %lld examples", (long long)done);
    sampler->rank = rank;
    sampler->size = size;
    if (epoch != sampler->epoch)
        sampler_set_epoch(sampler, epoch);
    sampler->done = done < sampler->examples ? done : sampler->examples;
    make_share(sampler);
    return 0;
}

int64_t sampler_at(const struct sampler *sampler, int64_t i)
{
    if (i < 0 || i >= sampler->count)
        return -1;
    int64_t left = sampler->examples - sampler->base;
    int64_t place = sampler->base + (i * sampler->size + sampler->rank) % left;
    return sampler->order == NULL ? place : sampler->order[place];
}

void sampler_record(struct sampler *sampler, int64_t examples)
{
    int64_t left = sampler->examples - sampler->done;
    bool all = examples >= (left + sampler->size - 1) / sampler->size;
    if (examples > 0)
        sampler->done = all ? sampler->examples : sampler->done + examples * sampler->size;
}
