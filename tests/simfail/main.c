/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of the simulator of failures (world.h):
 *   simfail FIRST COUNT   runs the schedules of these seeds; 1 at the first wrong verdict
 *   simfail --tell SEED   says what happens in one
 *   simfail --selftest    lets the driver make mistakes; 1 if one does not lead to a wrong verdict
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfail/world.h"

#define SELFTEST_COUNT 300000

static const char *const reasons[] = {
#define REASON_TEXT(name, text) text,
    REASON_LIST(REASON_TEXT)
#undef REASON_TEXT
};

static const char *const lies[] = {
#define LIE_TEXT(name, text) text,
    LIE_LIST(LIE_TEXT)
#undef LIE_TEXT
};

struct score {
    unsigned long long all, right, doubt;
};

static void add(struct score *score, const struct outcome *outcome)
{
    score->all++;
    score->right += outcome->right;
    score->doubt += outcome->doubt;
}

static int run(uint64_t first, uint64_t count)
{
    struct score scores[REASONS] = {{0}};
    unsigned long long news = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct outcome outcome;
        world_run(seed, LIE_NONE, false, &outcome);
        news += (unsigned long long)outcome.news;
        add(&scores[outcome.reason], &outcome);
        if (outcome.problem[0] == '\0')
            continue;
        printf("simfail: seed %llu: %s: %s\n", (unsigned long long)seed, reasons[outcome.reason],
               outcome.problem);
        return 1;
    }
    for (int i = 0; i < REASONS; i++)
        printf("%7llu %-52s %5.1f %% named, %4.1f %% with a doubt\n", scores[i].all, reasons[i],
               100.0 * (double)scores[i].right / (double)(scores[i].all + (scores[i].all == 0)),
               100.0 * (double)scores[i].doubt / (double)(scores[i].all + (scores[i].all == 0)));
    printf("%llu schedules, %llu news, no wrong verdict\n", (unsigned long long)count, news);
    return 0;
}

static int tell(uint64_t seed)
{
    struct outcome outcome;
    world_run(seed, LIE_NONE, true, &outcome);
    printf("%s: %s\n", reasons[outcome.reason],
           outcome.problem[0] == '\0' ? "all right" : outcome.problem);
    return outcome.problem[0] == '\0' ? 0 : 1;
}

static int selftest(void)
{
    int missed = 0;
    for (int lie = 0; lie < LIE_NONE; lie++) {
        struct outcome outcome = {.problem = ""};
        uint64_t seed = 0;
        while (seed < SELFTEST_COUNT && outcome.problem[0] == '\0')
            world_run(++seed, (enum lie)lie, false, &outcome);
        if (outcome.problem[0] == '\0')
            printf("simfail: nobody notices: %s\n", lies[lie]);
        else
            printf("%s: seed %llu: %s\n", lies[lie], (unsigned long long)seed, outcome.problem);
        missed += outcome.problem[0] == '\0';
    }
    return missed > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--selftest") == 0)
        return selftest();
    if (argc == 3 && strcmp(argv[1], "--tell") == 0)
        return tell(strtoull(argv[2], NULL, 10));
    if (argc == 3)
        return run(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    fprintf(stderr, "usage: simfail FIRST COUNT | --tell SEED | --selftest\n");
    return 2;
}
