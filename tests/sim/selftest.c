/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/selftest.h"

#include <stdio.h>

#define SELFTEST_SEEDS 50000

#define SELFTEST_INVARIANT(name, invariant, text) invariant,
static const enum invariant wanted[] = {MUTATION_LIST(SELFTEST_INVARIANT)};
#undef SELFTEST_INVARIANT

/* The number of the first seed whose schedule shows it; -1: none. */
static int noticed(struct world *world, struct schedule *schedule, enum mutation mutation)
{
    for (int seed = 1; seed <= SELFTEST_SEEDS; seed++) {
        schedule_generate((uint64_t)seed, schedule);
        if (world_run(world, schedule, mutation) == wanted[mutation])
            return seed;
    }
    return -1;
}

int selftest(struct world *world, bool verbose)
{
    struct schedule schedule;
    bool proven[INVARIANTS] = {[INV_NONE] = true, [INV_WORLD] = true};
    int missed = 0;
    for (int m = MUTATION_NONE + 1; m < MUTATIONS; m++) {
        const int seed = noticed(world, &schedule, (enum mutation)m);
        if (seed < 0)
            printf("not noticed by '%s': %s\n", invariant_text(wanted[m]),
                   mutation_text((enum mutation)m));
        else if (verbose)
            printf("%-45s seed %-5d %s\n", mutation_text((enum mutation)m), seed, world->problem);
        missed += seed < 0;
        proven[wanted[m]] |= seed >= 0;
    }
    for (int i = 0; i < INVARIANTS; i++) {
        if (!proven[i])
            printf("not proven able to fail: %s\n", invariant_text((enum invariant)i));
        missed += !proven[i];
    }
    printf("%d mutations, %d not noticed\n", MUTATIONS - 1, missed);
    return missed;
}
