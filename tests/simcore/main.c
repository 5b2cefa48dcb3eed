/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the simulator: see README.md. Exits with 0 if every invariant held, 1 if not,
 * 2 on wrong usage. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "simcore/world.h"

#define TEXT(name, text) text,
static const char *const invariants[] = {INVARIANT_LIST(TEXT)};
#undef TEXT

#define ROW(name, invariant, text) {invariant, text},
static const struct {
    enum invariant noticed_by;
    const char *text;
} faults[] = {FAULT_LIST(ROW)};
#undef ROW

enum { SELFTEST_SCHEDULES = 3000, LIMIT_SECONDS = 60 };

static bool run_one(uint64_t seed, bool verbose, struct statistics *statistics)
{
    struct program program;
    struct verdict verdict;
    alarm(LIMIT_SECONDS);
    program_generate(seed, &program);
    world_run(&program, FAULT_NONE, verbose, statistics, &verdict);
    if (verdict.broken == HOLDS)
        return true;
    printf("seed %llu: %s: %s\n", (unsigned long long)seed, invariants[verdict.broken],
           verdict.text);
    return false;
}

static int run_all(int64_t first, int64_t count, bool verbose)
{
    struct statistics sum = {0};
    for (int64_t i = 0; i < count; i++)
        if (!run_one((uint64_t)(first + i), verbose, &sum))
            return 1;
    printf("%lld schedules, %llu events: every invariant held\n"
           "%llu submissions: %llu succeeded, %llu mismatches, %llu lost, %llu shut down\n"
           "%llu operations of %llu tensors, %llu messages, %llu warnings of stalls, "
           "%llu changes of the threshold\n",
           (long long)count, (unsigned long long)sum.events, (unsigned long long)sum.submissions,
           (unsigned long long)sum.succeeded, (unsigned long long)sum.mismatches,
           (unsigned long long)sum.lost, (unsigned long long)sum.shut_down,
           (unsigned long long)sum.operations, (unsigned long long)sum.tensors,
           (unsigned long long)sum.messages, (unsigned long long)sum.stalls,
           (unsigned long long)sum.tunings);
    return 0;
}

/* Whether the invariant that should notice the fault does so in some schedule. */
static bool is_noticed(enum fault fault)
{
    for (uint64_t seed = 1; seed <= SELFTEST_SCHEDULES; seed++) {
        struct program program;
        struct verdict verdict;
        struct statistics statistics = {0};
        program_generate(seed, &program);
        world_run(&program, fault, false, &statistics, &verdict);
        if (verdict.broken == faults[fault].noticed_by)
            return true;
    }
    return false;
}

static int selftest(void)
{
    int missed = 0;
    for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
        bool noticed = is_noticed((enum fault)fault);
        printf("%s: %s\n", noticed ? "noticed" : "NOT NOTICED", faults[fault].text);
        missed += !noticed;
    }
    return missed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int64_t first = 1, count = 1000;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        struct error err = ERROR_INIT;
        int64_t *number = strcmp(argv[i], "--count") == 0 ? &count : &first;
        if (strcmp(argv[i], "--selftest") == 0)
            return selftest();
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
            continue;
        }
        bool known = strcmp(argv[i], "--count") == 0 || strcmp(argv[i], "--first") == 0 ||
                     strcmp(argv[i], "--seed") == 0;
        if (!known || i + 1 == argc || parse_int(argv[i + 1], 0, INT64_MAX, number, &err) != 0) {
            fprintf(stderr, "usage: simcore [--count N] [--first SEED]\n"
                            "       simcore --seed SEED [--verbose]\n"
                            "       simcore --selftest\n");
            return 2;
        }
        if (strcmp(argv[i], "--seed") == 0)
            count = 1;
        i++;
    }
    return run_all(first, count, verbose);
}
