/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simtree FIRST COUNT runs the schedules of these seeds (world.h), with --agents N in front of them
 * for N agents each. It exits with 1 at the first one in which something is wrong.
 * simtree --selftest lets the program do each thing wrong that world.h lists. It exits with 1 if
 * one is not noticed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simtree/world.h"

#define SELFTEST_COUNT 40000

static const char *const lies[] = {
#define LIE_TEXT(name, text) text,
    LIE_LIST(LIE_TEXT)
#undef LIE_TEXT
};

static int run(uint64_t first, uint64_t count, int agents)
{
    struct outcome all = {.problem = NULL};
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct outcome one = world_run(seed, agents, LIE_NONE);
        if (one.problem != NULL) {
            printf("simtree: seed %llu, %d agents: %s\n", (unsigned long long)seed, one.agents,
                   one.problem);
            return 1;
        }
        all.agents = one.agents > all.agents ? one.agents : all.agents;
        all.frames += one.frames;
        all.through += one.through;
        all.again += one.again;
        all.given_up += one.given_up;
        all.ended += one.ended;
        all.longest_ms = one.longest_ms > all.longest_ms ? one.longest_ms : all.longest_ms;
    }
    printf(
        "%llu schedules of up to %d agents, %llu frames, %llu through others, %llu sent again, "
        "%d ways given up, %d agents ended, no frame under way for more than %.1f s: all right\n",
        (unsigned long long)count, all.agents, (unsigned long long)all.frames,
        (unsigned long long)all.through, (unsigned long long)all.again, all.given_up, all.ended,
        (double)all.longest_ms / 1000);
    return 0;
}

static int selftest(void)
{
    int missed = 0;
    for (int lie = LIE_NONE + 1; lie < LIES; lie++) {
        bool noticed = false;
        for (uint64_t seed = 1; seed <= SELFTEST_COUNT && !noticed; seed++)
            noticed = world_run(seed, 0, (enum lie)lie).problem != NULL;
        if (!noticed)
            printf("simtree: nobody notices that %s\n", lies[lie]);
        missed += noticed ? 0 : 1;
    }
    return missed > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--selftest") == 0)
        return selftest();
    if (argc == 3)
        return run(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), 0);
    if (argc == 5 && strcmp(argv[1], "--agents") == 0)
        return run(strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                   (int)strtoul(argv[2], NULL, 10));
    fprintf(stderr, "usage: simtree [--agents N] FIRST COUNT | --selftest\n");
    return 2;
}
