/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simhang FIRST COUNT runs the schedules of these seeds (world.h). It checks that the judge never
 * finds a hang in a job that makes progress, and finds each planted hang in time. It exits with 1
 * otherwise. simhang --selftest lies to the judge about each phase, and exits with 1 if a lie is
 * not noticed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simhang/world.h"

#define SELFTEST_COUNT 300
#define SOON_STEPS 3

static const char *const phases[] = {
#define PHASE_TEXT(name, text) text,
    PHASE_LIST(PHASE_TEXT)
#undef PHASE_TEXT
};

static int run(uint64_t first, uint64_t count)
{
    uint64_t hangs = 0, soon = 0, steps = 0;
    int64_t latest = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct outcome outcome = world_run(seed, PHASES);
        hangs += outcome.hung;
        soon += outcome.hung && outcome.late_steps <= SOON_STEPS;
        steps += (uint64_t)outcome.steps;
        latest = outcome.late_ms > latest ? outcome.late_ms : latest;
        if (outcome.problem == NULL)
            continue;
        printf("simhang: seed %llu: %s (%s)\n", (unsigned long long)seed, outcome.problem,
               phases[outcome.phase]);
        return 1;
    }
    printf("%llu schedules, %llu samples, %llu hangs, %llu found within %d samples after the "
           "limit, the "
           "latest after %.1f s: all right\n",
           (unsigned long long)count, (unsigned long long)steps, (unsigned long long)hangs,
           (unsigned long long)soon, SOON_STEPS, (double)latest / 1000);
    return 0;
}

/* A hang that the judge takes for progress, and progress that it takes for a hang. */
static int selftest(void)
{
    int missed = 0;
    for (int lie = 0; lie < PHASES; lie++) {
        bool noticed = false;
        for (uint64_t seed = 1; seed <= SELFTEST_COUNT && !noticed; seed++)
            noticed = world_run(seed, (enum phase)lie).problem != NULL;
        if (!noticed)
            printf("simhang: nobody notices a lie about '%s'\n", phases[lie]);
        missed += noticed ? 0 : 1;
    }
    return missed > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--selftest") == 0)
        return selftest();
    if (argc == 3)
        return run(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    fprintf(stderr, "usage: simhang FIRST COUNT | --selftest\n");
    return 2;
}
