/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/ras_facts_driver.h"

#include <stdlib.h>

#include "base/mem.h"

#define COMMUNICATORS_MAX 1024 /* of a worker */

struct seat_places {
    struct ras_place *places;
    size_t count; /* 0: no answer */
    uint64_t moves;
};

struct ras_facts {
    struct seat_places *seats;
    int count;
};

struct ras_facts *ras_facts_create(void)
{
    return mem_alloc(sizeof(struct ras_facts));
}

void ras_facts_destroy(struct ras_facts *facts)
{
    if (facts == NULL)
        return;
    ras_facts_forget(facts);
    free(facts->seats);
    free(facts);
}

void ras_facts_forget(struct ras_facts *facts)
{
    for (int i = 0; i < facts->count; i++) {
        free(facts->seats[i].places);
        facts->seats[i].places = NULL;
        facts->seats[i].count = 0;
    }
}

static struct seat_places *seat_at(struct ras_facts *facts, int index)
{
    if (index >= facts->count) {
        facts->seats = mem_resize_array(facts->seats, (size_t)index + 1, sizeof(*facts->seats));
        for (int i = facts->count; i <= index; i++)
            facts->seats[i] = (struct seat_places){.count = 0};
        facts->count = index + 1;
    }
    return &facts->seats[index];
}

static struct ras_rank rank_of(const struct seat_places *seat)
{
    return (struct ras_rank){seat->places, seat->count};
}

static void copy_places(struct seat_places *seat, const Hvdrun__RankPulse *pulse)
{
    size_t count = pulse->n_ras < COMMUNICATORS_MAX ? pulse->n_ras : COMMUNICATORS_MAX;
    free(seat->places);
    seat->places = mem_array(count + 1, sizeof(*seat->places));
    seat->count = 0;
    for (size_t i = 0; i < count; i++) {
        const Hvdrun__RasPlace *source = pulse->ras[i];
        if (source->n_counts != RAS_OPERATIONS)
            continue;
        struct ras_place *place = &seat->places[seat->count++];
        place->comm = source->comm;
        for (int j = 0; j < RAS_OPERATIONS; j++)
            place->counts[j] = source->counts[j] <= INT64_MAX ? (int64_t)source->counts[j] : 0;
    }
}

uint64_t ras_facts_take(struct ras_facts *facts, int seat, const Hvdrun__RankPulse *pulse)
{
    if (pulse->n_ras == 0)
        return seat < facts->count ? facts->seats[seat].moves : 0;
    struct seat_places *its = seat_at(facts, seat);
    struct ras_rank rank = rank_of(its);
    bool known = rank.count > 0;
    uint64_t before = ras_mark(&rank);
    copy_places(its, pulse);
    rank = rank_of(its);
    its->moves += known && ras_mark(&rank) != before;
    return its->moves;
}

struct ras_rank ras_facts_of(const struct ras_facts *facts, int seat)
{
    return seat < facts->count ? rank_of(&facts->seats[seat]) : (struct ras_rank){.count = 0};
}
